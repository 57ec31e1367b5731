/** How often entries that are over are removed, milliseconds. */
const cleanUpIntervalMillis = 1000

interface Entry<A> {
  readonly value: A
  readonly until: number
}

/** A Map of what is of use until some time only, on the monotonic clock. What is set later is over later. */
export class ExpiringMap<A> {
  readonly #entries = new Map<string, Entry<A>>()
  #cleanUpAt = 0

  get(key: string, now: number): Entry<A> | undefined {
    const entry = this.#entries.get(key)
    return entry !== undefined && entry.until >= now ? entry : undefined
  }

  set(key: string, value: A, until: number, now: number): void {
    if (now >= this.#cleanUpAt) this.#cleanUp(now)
    this.#entries.delete(key)
    this.#entries.set(key, { value, until })
  }

  delete(key: string): void {
    this.#entries.delete(key)
  }

  #cleanUp(now: number): void {
    this.#cleanUpAt = now + cleanUpIntervalMillis
    for (const [key, { until }] of this.#entries) {
      if (until >= now) break
      this.#entries.delete(key)
    }
  }
}
