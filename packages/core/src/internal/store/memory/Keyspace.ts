/**
 * As much of a Redis database as the locks need: hashes and strings that expire, and channels. Time is given by the
 * caller, so that it follows Effect's `Clock`.
 */
export type Value =
  | { readonly _tag: "hash"; readonly fields: Map<string, string> }
  | {
      readonly _tag: "string"
      readonly text: string
    }

interface Entry {
  value: Value
  expiresAt: number | undefined
}

const firstMicros = 1_000_000_000_000_000

/**
 * Redis answers so when a key holds another type.
 */
export class WrongType extends Error {
  constructor() {
    super("WRONGTYPE Operation against a key holding the wrong kind of value")
  }
}

export class Keyspace {
  readonly #entries = new Map<string, Entry>()
  readonly #listeners = new Map<string, Set<(message: string) => void>>()
  readonly #now: () => number
  #published = 0

  constructor(now: () => number) {
    this.#now = now
  }

  #live(key: string): Entry | undefined {
    const entry = this.#entries.get(key)
    if (entry !== undefined && entry.expiresAt !== undefined && entry.expiresAt <= this.#now()) {
      this.#entries.delete(key)
      return undefined
    }
    return entry
  }

  /** Server time in microseconds. A test's clock may begin at zero; a server's has not for a long time. */
  timeMicros(): number {
    return Math.max(firstMicros, Math.floor(this.#now() * 1000))
  }

  keys(): ReadonlyArray<string> {
    return [...this.#entries.keys()].filter((key) => this.#live(key) !== undefined)
  }

  exists(key: string): boolean {
    return this.#live(key) !== undefined
  }

  delete(key: string): boolean {
    const existed = this.exists(key)
    this.#entries.delete(key)
    return existed
  }

  /** Milliseconds left: -2 no such key, -1 no expiry. */
  pttl(key: string): number {
    const entry = this.#live(key)
    return entry === undefined ? -2 : entry.expiresAt === undefined ? -1 : Math.ceil(entry.expiresAt - this.#now())
  }

  expire(key: string, millis: number): void {
    const entry = this.#live(key)
    if (entry === undefined) return
    if (millis <= 0) this.#entries.delete(key)
    else entry.expiresAt = this.#now() + millis
  }

  getString(key: string): string | undefined {
    const entry = this.#live(key)
    if (entry === undefined) return undefined
    if (entry.value._tag !== "string") throw new WrongType()
    return entry.value.text
  }

  setString(key: string, text: string, millis?: number): void {
    this.#entries.set(key, {
      value: { _tag: "string", text },
      expiresAt: millis === undefined ? undefined : this.#now() + millis
    })
  }

  /** The fields of a hash, for reading. */
  hash(key: string): ReadonlyMap<string, string> | undefined {
    const entry = this.#live(key)
    if (entry === undefined) return undefined
    if (entry.value._tag !== "hash") throw new WrongType()
    return entry.value.fields
  }

  hset(key: string, field: string, text: string): void {
    const entry = this.#live(key)
    if (entry === undefined) {
      this.#entries.set(key, { value: { _tag: "hash", fields: new Map([[field, text]]) }, expiresAt: undefined })
    } else if (entry.value._tag === "hash") {
      entry.value.fields.set(field, text)
    } else {
      throw new WrongType()
    }
  }

  hdel(key: string, field: string): boolean {
    const entry = this.#live(key)
    if (entry === undefined) return false
    if (entry.value._tag !== "hash") throw new WrongType()
    const existed = entry.value.fields.delete(field)
    if (entry.value.fields.size === 0) this.#entries.delete(key)
    return existed
  }

  /** Tells all listeners, beginning with another one each time, and returns how many there are. */
  publish(channel: string, message: string): number {
    const listeners = [...(this.#listeners.get(channel) ?? [])]
    const first = this.#published++ % Math.max(1, listeners.length)
    for (const listener of [...listeners.slice(first), ...listeners.slice(0, first)]) listener(message)
    return listeners.length
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
