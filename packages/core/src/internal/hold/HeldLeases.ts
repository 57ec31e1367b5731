import { excludes, type Mode } from "../kinds/kinds.ts"
import { ownHold } from "./Hold.ts"
import type { Identity, Lease } from "./Lease.ts"

/** How many entries may be deleted before the Map is replaced, beyond as many as there are. */
const leastDeletions = 16

/**
 * A Map through which many entries pass. V8 gives a Map a new table again and again, and the old table refers to the new one. A table that
 * has reached the old generation thus keeps all later ones alive, and their entries, until the next full collection. A new Map now and then
 * ends that. Ten million entries of 1 kB, eight at a time, take 31 MB at most and 10 full collections; in a Map 84 MB and 270 (Node 20.20).
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

/**
 * The leases that a client has, by lock: one for each, but of readers that share a lock several. The map has the latest, with the others
 * alongside.
 */
export class HeldLeases extends PassingMap<string, Lease> {
  /** The lease of this lock in this mode that the identity may re-enter. */
  find(key: string, mode: Mode, identity: Identity): Lease | undefined {
    if (!this.has(key)) return undefined
    return this.of(key).find(
      (lease) => lease.kind.mode === mode && ownHold(identity, lease) !== undefined && lease.isHeld()
    )
  }

  /** Whether a lease of this process keeps the lock from being acquired in a mode. */
  exclude(key: string, mode: Mode): boolean {
    return this.has(key) && this.of(key).some((lease) => excludes(lease.kind.mode, mode) && lease.isHeld())
  }

  add(lease: Lease): void {
    const { lock } = lease.keys
    lease.alongside = this.get(lock)
    this.set(lock, lease)
  }

  /** Whether it was there. */
  remove(lease: Lease): boolean {
    const { lock } = lease.keys
    const { alongside } = lease
    lease.alongside = undefined
    let other = this.get(lock)
    if (other === lease) {
      if (alongside === undefined) this.delete(lock)
      else this.set(lock, alongside)
      return true
    }
    while (other !== undefined && other.alongside !== lease) other = other.alongside
    if (other === undefined) return false
    other.alongside = alongside
    return true
  }

  /** Those of one lock, oldest first: a copy, because checking a lease may find it lost and remove it. */
  of(key: string): ReadonlyArray<Lease> {
    const leases: Array<Lease> = []
    for (let lease = this.get(key); lease !== undefined; lease = lease.alongside) leases.push(lease)
    return leases.toReversed()
  }

  get all(): ReadonlyArray<Lease> {
    return this.keys().flatMap((key) => this.of(key))
  }
}
