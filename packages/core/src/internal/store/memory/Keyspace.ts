/**
 * The part of a Redis database that the locks need: strings, hashes, lists and sorted sets that expire, and channels. The
 * caller provides the time, so that it follows Effect's `Clock`; later accesses and writes free expired entries.
 */
import { type Due, DueQueue } from "../../time/clock.ts"

export type Value =
  | { readonly _tag: "string"; readonly text: string }
  | { readonly _tag: "hash"; readonly fields: Map<string, string> }
  | { readonly _tag: "list"; readonly items: Array<string> }
  | { readonly _tag: "zset"; readonly scores: Map<string, number> }

/** Queued while it has an expiry. */
class Entry implements Due {
  readonly key: string
  value: Value
  due = 0
  heapIndex = -1

  constructor(key: string, value: Value) {
    this.key = key
    this.value = value
  }

  get expires(): boolean {
    return this.heapIndex !== -1
  }
}

/** The most expired entries that a write frees: more than it adds, and few enough to cause no pause. */
const freedPerWrite = 16

/** Above the counters of fenced locks. */
const firstMicros = 1_000_000_001_000_000

/** Redis's reply when a key holds another type. */
export class WrongType extends Error {
  constructor(problem = "Operation against a key holding the wrong kind of value") {
    super(`WRONGTYPE ${problem}`)
  }
}

export class Keyspace {
  readonly #entries = new Map<string, Entry>()
  readonly #expiring = new DueQueue<Entry>()
  readonly #listeners = new Map<string, Set<(message: string) => void>>()
  readonly #now: () => number
  readonly #startedAt: number
  readonly #startMicros: number
  #published = 0

  /** `now` returns milliseconds, preferably monotonic: leases end by it. `startMillis` is the server's time now, since the epoch. */
  constructor(now: () => number, startMillis: number = now()) {
    this.#now = now
    this.#startedAt = now()
    // a test's clock may begin at zero, but tokens that are times must be above the counters
    this.#startMicros = startMillis * 1000 < firstMicros ? firstMicros + startMillis * 1000 : startMillis * 1000
  }

  /** The number of keys in memory. */
  get size(): number {
    return this.#entries.size
  }

  #live(key: string): Entry | undefined {
    const entry = this.#entries.get(key)
    if (entry === undefined || !entry.expires || entry.due > this.#now()) return entry
    this.#remove(entry)
    return undefined
  }

  #write(key: string, value: Value): Entry {
    const now = this.#now()
    for (let freed = 0; freed < freedPerWrite; freed++) {
      const { first } = this.#expiring
      if (first === undefined || first.due > now) break
      this.#remove(first)
    }
    const before = this.#entries.get(key)
    if (before !== undefined) this.#expiring.remove(before)
    const entry = new Entry(key, value)
    this.#entries.set(key, entry)
    return entry
  }

  #remove(entry: Entry): void {
    this.#expiring.remove(entry)
    this.#entries.delete(entry.key)
  }

  #expireAt(entry: Entry, due: number): void {
    entry.due = due
    this.#expiring.put(entry)
  }

  /** Server time in microseconds since the epoch. */
  timeMicros(): number {
    return Math.floor(this.#startMicros + (this.#now() - this.#startedAt) * 1000)
  }

  /** Server time in milliseconds since the epoch. */
  timeMillis(): number {
    return Math.floor(this.timeMicros() / 1000)
  }

  keys(): ReadonlyArray<string> {
    return [...this.#entries.keys()].filter((key) => this.#live(key) !== undefined)
  }

  exists(key: string): boolean {
    return this.#live(key) !== undefined
  }

  delete(key: string): boolean {
    const entry = this.#live(key)
    if (entry !== undefined) this.#remove(entry)
    return entry !== undefined
  }

  /** Milliseconds left: -2 no such key, -1 no expiry. */
  pttl(key: string): number {
    const entry = this.#live(key)
    return entry === undefined ? -2 : entry.expires ? Math.ceil(entry.due - this.#now()) : -1
  }

  expire(key: string, millis: number): void {
    const entry = this.#live(key)
    if (entry === undefined) return
    if (millis <= 0) this.#remove(entry)
    else this.#expireAt(entry, this.#now() + millis)
  }

  /** Takes the expiry away; false if there is none. */
  persist(key: string): boolean {
    const entry = this.#live(key)
    if (entry === undefined || !entry.expires) return false
    this.#expiring.remove(entry)
    return true
  }

  /** As the TYPE command names it. */
  type(key: string): Value["_tag"] | "none" {
    return this.#live(key)?.value._tag ?? "none"
  }

  #value<Tag extends Value["_tag"]>(key: string, tag: Tag): Extract<Value, { readonly _tag: Tag }> | undefined {
    const value = this.#live(key)?.value
    if (value !== undefined && value._tag !== tag) throw new WrongType()
    return value as Extract<Value, { readonly _tag: Tag }> | undefined
  }

  #add<V extends Value>(key: string, value: V): V {
    this.#write(key, value)
    return value
  }

  getString(key: string): string | undefined {
    return this.#value(key, "string")?.text
  }

  setString(key: string, text: string, millis?: number): void {
    const entry = this.#write(key, { _tag: "string", text })
    if (millis !== undefined) this.#expireAt(entry, this.#now() + millis)
  }

  /** Adds to a number, from zero; its expiry stays as it is. */
  incrBy(key: string, by: number): number {
    const before = this.getString(key) ?? "0"
    const sum = Number(before) + by
    if (!/^-?\d+$/.test(before) || !Number.isSafeInteger(sum))
      throw new Error("ERR value is not an integer or out of range")
    const entry = this.#live(key)
    if (entry === undefined) this.setString(key, String(sum))
    else entry.value = { _tag: "string", text: String(sum) }
    return sum
  }

  /** The fields of a hash, for reading. */
  hash(key: string): ReadonlyMap<string, string> | undefined {
    return this.#value(key, "hash")?.fields
  }

  hset(key: string, field: string, text: string): void {
    const { fields } = this.#value(key, "hash") ?? this.#add(key, { _tag: "hash", fields: new Map() })
    fields.set(field, text)
  }

  hdel(key: string, field: string): boolean {
    const fields = this.#value(key, "hash")?.fields
    const existed = fields?.delete(field) ?? false
    if (fields?.size === 0) this.delete(key)
    return existed
  }

  /** The items of a list, for reading. */
  list(key: string): ReadonlyArray<string> {
    return this.#value(key, "list")?.items ?? []
  }

  rpush(key: string, item: string): void {
    const { items } = this.#value(key, "list") ?? this.#add(key, { _tag: "list", items: [] })
    items.push(item)
  }

  lpop(key: string): void {
    const items = this.#value(key, "list")?.items
    items?.shift()
    if (items?.length === 0) this.delete(key)
  }

  /** Removes every such item. */
  lrem(key: string, item: string): void {
    const items = this.#value(key, "list")?.items
    if (items === undefined) return
    for (let at = items.indexOf(item); at !== -1; at = items.indexOf(item)) items.splice(at, 1)
    if (items.length === 0) this.delete(key)
  }

  /** The members of a sorted set with their scores, for reading, lowest first. */
  zset(key: string): ReadonlyArray<readonly [member: string, score: number]> {
    const byScore = (a: readonly [string, number], b: readonly [string, number]) =>
      a[1] - b[1] || (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0)
    return [...(this.#value(key, "zset")?.scores ?? [])].sort(byScore)
  }

  zscore(key: string, member: string): number | undefined {
    return this.#value(key, "zset")?.scores.get(member)
  }

  zadd(key: string, score: number, member: string): void {
    const { scores } = this.#value(key, "zset") ?? this.#add(key, { _tag: "zset", scores: new Map() })
    scores.set(member, score)
  }

  zrem(key: string, member: string): boolean {
    const scores = this.#value(key, "zset")?.scores
    const existed = scores?.delete(member) ?? false
    if (scores?.size === 0) this.delete(key)
    return existed
  }

  /** Calls all listeners, starting with a different one each time, and returns how many there are. */
  publish(channel: string, message: string): number {
    const listeners = [...(this.#listeners.get(channel) ?? [])]
    const first = this.#published++ % Math.max(1, listeners.length)
    for (const listener of [...listeners.slice(first), ...listeners.slice(0, first)]) listener(message)
    return listeners.length
  }

  /** The number of listeners of a channel. */
  listeners(channel: string): number {
    return this.#listeners.get(channel)?.size ?? 0
  }

  /** Adds a listener; the result removes it. */
  listen(channel: string, listener: (message: string) => void): () => void {
    const listeners = this.#listeners.get(channel) ?? new Set()
    this.#listeners.set(channel, listeners.add(listener))
    return () => {
      listeners.delete(listener)
      if (listeners.size === 0) this.#listeners.delete(channel)
    }
  }
}

const special = /[.+^${}()|\\/]/

/** The glob patterns of Redis: `*`, `?`, `[a-c]`, `[^a]`, and a backslash that escapes a character. */
export const globToRegExp = (pattern: string): RegExp => {
  let source = ""
  let inClass = false
  for (let i = 0; i < pattern.length; i++) {
    const char = pattern[i]!
    if (char === "\\" && i + 1 < pattern.length) {
      source += pattern[++i]!.replace(/[^A-Za-z0-9]/, "\\$&")
    } else if (inClass) {
      inClass = char !== "]"
      source += char
    } else if (char === "[" && pattern.includes("]", i)) {
      inClass = true
      source += char
    } else if (char === "*") {
      source += "[^]*"
    } else if (char === "?") {
      source += "[^]"
    } else {
      source += special.test(char) || char === "[" || char === "]" ? `\\${char}` : char
    }
  }
  return new RegExp(`^${source}$`, "u")
}
