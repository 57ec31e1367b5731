import type { FairWaiter } from "./FairWaiter.ts"
import { LinkedList } from "../LinkedList.ts"

/**
 * The most waiters that one report names: enough to find a place that was lost unnoticed within seconds, and few enough
 * that the cost of a report does not grow with the queue.
 */
export const mostReported = 32

/** The waiters that a report names. */
export interface Reported {
  readonly owners: ReadonlyArray<string>
  /** Whether they start with the first waiter of this process. */
  readonly fromFirst: boolean
}

/** The waiters of this process for one fair lock, in order of arrival. Reports name them in turn. */
export class FairWaiters {
  readonly #byOwner = new Map<string, FairWaiter>()
  readonly #order = new LinkedList<FairWaiter>()
  /** Where the next report starts; undefined for the first waiter. */
  #next: FairWaiter | undefined = undefined
  /** How many are still to be reported soon, as they may have lost their places. */
  #toReport = 0

  get size(): number {
    return this.#byOwner.size
  }

  get first(): FairWaiter | undefined {
    return this.#order.first
  }

  get(owner: string): FairWaiter | undefined {
    return this.#byOwner.get(owner)
  }

  values(): Iterable<FairWaiter> {
    return this.#byOwner.values()
  }

  add(waiter: FairWaiter): void {
    this.#byOwner.set(waiter.owner, waiter)
    this.#order.add(waiter)
  }

  /** Returns whether it was there. */
  remove(waiter: FairWaiter): boolean {
    if (!this.#byOwner.delete(waiter.owner)) return false
    if (this.#next === waiter) this.#next = waiter.behind
    this.#order.remove(waiter)
    return true
  }

  /** Whether reports follow each other without a pause until all waiters have been reported. */
  get isReportingAll(): boolean {
    return this.#toReport > 0
  }

  /** Makes the next reports cover all waiters, starting with the first. */
  reportAll(): void {
    this.#next = this.#order.first
    this.#toReport = this.size
  }

  /** The waiters that the next report names; one with a request in flight needs no report. */
  reported(): Reported {
    if (this.size <= mostReported) this.#next = undefined
    let waiter = this.#next ?? this.#order.first
    const fromFirst = waiter === this.#order.first
    const owners: Array<string> = []
    for (let looked = Math.min(this.size, mostReported); looked > 0 && waiter !== undefined; looked--) {
      if (!waiter.asking) owners.push(waiter.owner)
      waiter = waiter.behind ?? this.#order.first
    }
    this.#next = waiter
    this.#toReport = Math.max(0, this.#toReport - mostReported)
    return { owners, fromFirst }
  }
}
