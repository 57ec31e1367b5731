/**
 * The held locks as the server has told them, in the order and with the filter that the user has chosen.
 */
import type { LockLine, LocksChanged } from "./connection/wire.ts"

export const orders = ["name", "holder", "age", "lease", "waiting"] as const
export type Order = (typeof orders)[number]

export class Locks {
  readonly #all = new Map<string, LockLine>()
  #shown: ReadonlyArray<LockLine> | undefined
  #order: Order = "name"
  #isReversed = false
  #filter = ""
  #ahead = 0

  get size(): number {
    return this.#all.size
  }

  get order(): Order {
    return this.#order
  }

  get isReversed(): boolean {
    return this.#isReversed
  }

  get filter(): string {
    return this.#filter
  }

  get(name: string): LockLine | undefined {
    return this.#all.get(name)
  }

  values(): Iterable<LockLine> {
    return this.#all.values()
  }

  /** The server's clock. */
  now(): number {
    return Date.now() + this.#ahead
  }

  change({ free, held, isWhole, now }: LocksChanged): void {
    this.#ahead = now - Date.now()
    if (isWhole) this.#all.clear()
    for (const lock of held) this.#all.set(lock.name, lock)
    for (const name of free) this.#all.delete(name)
    this.#shown = undefined
  }

  /** The same order again reverses it. */
  sortBy(order: Order): void {
    this.#isReversed = order === this.#order && !this.#isReversed
    this.#order = order
    this.#shown = undefined
  }

  search(text: string): void {
    this.#filter = text
    this.#shown = undefined
  }

  /** Those that match the filter, in their order. */
  shown(): ReadonlyArray<LockLine> {
    this.#shown ??= this.#sorted()
    return this.#shown
  }

  #sorted(): ReadonlyArray<LockLine> {
    const wanted = this.#filter.toLowerCase()
    const matching = Array.from(this.#all.values()).filter((lock) => matches(lock, wanted))
    const sign = this.#isReversed ? -1 : 1
    const by = comparisons[this.#order]
    return matching.sort((a, b) => sign * (by(a, b) || compare(a.name, b.name)))
  }
}

const matches = ({ holders, name }: LockLine, wanted: string): boolean =>
  name.toLowerCase().includes(wanted) ||
  holders.some(
    ({ label, owner }) => owner.toLowerCase().includes(wanted) || label?.toLowerCase().includes(wanted) === true
  )

const compare = (a: string | number, b: string | number): number => (a < b ? -1 : a > b ? 1 : 0)

const holderOf = ({ holders: [first] }: LockLine): string => first?.label ?? first?.owner ?? ""

/** What wants attention comes first. */
const comparisons: Record<Order, (a: LockLine, b: LockLine) => number> = {
  name: () => 0,
  holder: (a, b) => compare(holderOf(a), holderOf(b)),
  age: (a, b) => compare(a.since, b.since),
  lease: (a, b) => compare(a.leaseEnds ?? Number.POSITIVE_INFINITY, b.leaseEnds ?? Number.POSITIVE_INFINITY),
  waiting: (a, b) => compare(b.waiting, a.waiting)
}
