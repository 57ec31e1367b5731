import type { Lease } from "../hold/Lease.ts"
import { PassingMap } from "./PassingMap.ts"

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
