/**
 * The part of a Redis database that the locks need: strings, hashes, lists and sorted sets that expire, and channels. The
 * caller provides the time, so that it follows Effect's `Clock`; later accesses and writes free expired entries.
 */
import { type Due, DueQueue } from "../../time/clock.ts"

/** The values of keys, by the type that Redis names. */
export interface Values {
  readonly string: string
  readonly hash: Map<string, string>
  readonly list: Array<string>
  /** Scores by member. */
  readonly zset: Map<string, number>
}

/** Queued while it has an expiry. */
class Entry implements Due {
  readonly key: string
  readonly type: keyof Values
  value: Values[keyof Values]
  due = 0
  heapIndex = -1

  constructor(key: string, type: keyof Values, value: Values[keyof Values]) {
    this.key = key
    this.type = type
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

  /** Writes a value under a key, which expires after some milliseconds, or not at all. */
  set<T extends keyof Values>(key: string, type: T, value: Values[T], millis?: number): void {
    const now = this.#now()
    for (let freed = 0; freed < freedPerWrite; freed++) {
      const { first } = this.#expiring
      if (first === undefined || first.due > now) break
      this.#remove(first)
    }
    const before = this.#entries.get(key)
    if (before !== undefined) this.#expiring.remove(before)
    const entry = new Entry(key, type, value)
    this.#entries.set(key, entry)
    if (millis !== undefined) this.#expireAt(entry, now + millis)
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

  /** Replaces the expiry; false if there is no such key. */
  expire(key: string, millis: number): boolean {
    const entry = this.#live(key)
    if (entry === undefined) return false
    if (millis <= 0) this.#remove(entry)
    else this.#expireAt(entry, this.#now() + millis)
    return true
  }

  /** Takes the expiry away; false if there is none. */
  persist(key: string): boolean {
    const entry = this.#live(key)
    if (entry === undefined || !entry.expires) return false
    this.#expiring.remove(entry)
    return true
  }

  /** As the TYPE command names it. */
  type(key: string): keyof Values | "none" {
    return this.#live(key)?.type ?? "none"
  }

  /** The value of a key, which must have this type. */
  get<T extends keyof Values>(key: string, type: T): Values[T] | undefined {
    const entry = this.#live(key)
    if (entry !== undefined && entry.type !== type) {
      throw new Error("WRONGTYPE Operation against a key holding the wrong kind of value")
    }
    return entry?.value as Values[T] | undefined
  }

  /** The value of a key for adding to it: a new one, if there is none. */
  open<T extends Exclude<keyof Values, "string">>(key: string, type: T): Values[T] {
    const found = this.get(key, type)
    if (found !== undefined) return found
    const value = (type === "list" ? [] : new Map()) as Values[T]
    this.set(key, type, value)
    return value
  }

  /** Removes the key of a value from which everything has been removed. */
  deleteIfEmpty(key: string): void {
    const value = this.#live(key)?.value
    if (value instanceof Map ? value.size === 0 : value?.length === 0) this.delete(key)
  }

  /** Replaces a string; its expiry stays as it is. */
  replace(key: string, text: string): void {
    const entry = this.#live(key)
    if (entry === undefined) this.set(key, "string", text)
    else entry.value = text
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

const parts = /\\([^])|\[(\^?)((?:\\[^]|[^\]]-[^]|[^\]])*)\]?|[^]/g
const members = /\\([^])|([^])-([^])|[^]/g

/** A byte of which no syntax of regular expressions is left. */
const literal = (byte: string): string => `\\x${byte.charCodeAt(0).toString(16).padStart(2, "0")}`

/** Redis takes the ends of a range in either order. */
const memberOf = (one: string, escaped?: string, from?: string, to?: string): string =>
  from === undefined || to === undefined ? literal(escaped ?? one) : [from, to].toSorted().map(literal).join("-")

/**
 * The glob patterns of Redis: `*`, `?`, `[a-c]`, `[^a]`, and a backslash before a character that stands for itself. Both the pattern and
 * the keys that it matches are bytes; a bracket that is not closed reaches to the end.
 */
export const globToRegExp = (pattern: string): RegExp => {
  const source = pattern.replace(parts, (one: string, escaped?: string, not?: string, set?: string) => {
    if (set !== undefined) return `[${not}${set.replace(members, memberOf)}]`
    return one === "*" ? "[^]*" : one === "?" ? "[^]" : literal(escaped ?? one)
  })
  return new RegExp(`^${source}$`)
}
