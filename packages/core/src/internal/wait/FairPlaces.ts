import type { FairWaiter } from "./FairWaiter.ts"
import { LinkedList } from "./LinkedList.ts"

/**
 * The most waiters that one report names: enough to find a place that was lost unnoticed within seconds, and few enough
 * that the cost of a report does not grow with the queue.
 */
export const namedAtMost = 32

/** The waiters that a report names. */
export interface Named {
  readonly owners: ReadonlyArray<string>
  /** Whether they start with the first waiter of this process. */
  readonly fromFirst: boolean
}

/** The waiters of this process for one fair lock, in order of arrival. Reports name them in turn. */
export class FairPlaces {
  readonly #byOwner = new Map<string, FairWaiter>()
  readonly #order = new LinkedList<FairWaiter>()
  /** Where the next report starts; undefined for the first waiter. */
  #next: FairWaiter | undefined = undefined
  /** How many are still to be named soon, as they may have lost their places. */
  #toName = 0

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

  add(place: FairWaiter): void {
    this.#byOwner.set(place.owner, place)
    this.#order.add(place)
  }

  /** Returns whether it was there. */
  remove(place: FairWaiter): boolean {
    if (!this.#byOwner.delete(place.owner)) return false
    if (this.#next === place) this.#next = place.behind
    this.#order.remove(place)
    return true
  }

  /** Whether reports follow each other without a pause until all waiters have been named. */
  get isNamingAll(): boolean {
    return this.#toName > 0
  }

  /** Makes the next reports name all waiters, starting with the first. */
  nameAll(): void {
    this.#next = this.#order.first
    this.#toName = this.size
  }

  /** The waiters that the next report names; one with a request in flight needs no report. */
  named(): Named {
    if (this.size <= namedAtMost) this.#next = undefined
    let place = this.#next ?? this.#order.first
    const fromFirst = place === this.#order.first
    const owners: Array<string> = []
    for (let looked = Math.min(this.size, namedAtMost); looked > 0 && place !== undefined; looked--) {
      if (!place.asking) owners.push(place.owner)
      place = place.behind ?? this.#order.first
    }
    this.#next = place
    this.#toName = Math.max(0, this.#toName - namedAtMost)
    return { owners, fromFirst }
  }
}
