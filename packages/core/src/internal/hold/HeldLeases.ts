import type { Lease } from "./Lease.ts"

/** The leases that a client has: one for each lock, but of readers that share a lock several. */
export class HeldLeases {
  /** The latest one of each lock, with the others alongside. */
  readonly #latest = new PassingMap<string, Lease>()

  get isEmpty(): boolean {
    return this.#latest.size === 0
  }

  has(key: string): boolean {
    return this.#latest.has(key)
  }

  add(lease: Lease): void {
    const { lock } = lease.keys
    lease.alongside = this.#latest.get(lock)
    this.#latest.set(lock, lease)
  }

  remove(lease: Lease): void {
    const { lock } = lease.keys
    const { alongside } = lease
    lease.alongside = undefined
    const latest = this.#latest.get(lock)
    if (latest === lease) {
      if (alongside === undefined) this.#latest.delete(lock)
      else this.#latest.set(lock, alongside)
      return
    }
    for (let other = latest; other !== undefined; other = other.alongside) {
      if (other.alongside === lease) other.alongside = alongside
    }
  }

  /** Those of one lock, oldest first: a copy. */
  of(key: string): ReadonlyArray<Lease> {
    const leases: Array<Lease> = []
    for (let lease = this.#latest.get(key); lease !== undefined; lease = lease.alongside) leases.push(lease)
    return leases.toReversed()
  }

  get all(): ReadonlyArray<Lease> {
    return this.#latest.keys().flatMap((key) => this.of(key))
  }
}

/** How many entries may be deleted before the Map is replaced, beyond as many as there are. */
const leastDeletions = 16

/**
 * A Map through which many entries pass. V8 gives a Map a new table again and again, and the old table refers to the new one. A table that
 * has reached the old generation thus keeps all later ones alive, and their entries, until the next full collection. A new Map now and then
 * ends that.
 */
export class PassingMap<K, V> {
  #entries = new Map<K, V>()
  #deletions = 0

  get size(): number {
    return this.#entries.size
  }

  get(key: K): V | undefined {
    return this.#entries.get(key)
  }

  has(key: K): boolean {
    return this.#entries.has(key)
  }

  set(key: K, value: V): void {
    this.#entries.set(key, value)
  }

  delete(key: K): void {
    if (!this.#entries.delete(key) || ++this.#deletions < leastDeletions + this.#entries.size) return
    this.#entries = new Map(this.#entries)
    this.#deletions = 0
  }

  keys(): ReadonlyArray<K> {
    return [...this.#entries.keys()]
  }
}
