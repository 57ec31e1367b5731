import type { FairWaiter } from "./FairWaiter.ts"
import { LinkedList } from "./LinkedList.ts"

/**
 * How many waiters one report names: enough that a place which was lost, and nobody noticed, is found within seconds, and few
 * enough that reports cost the same however many wait.
 */
export const namedAtMost = 32

/** Those whom a report names. */
export interface Named {
  readonly owners: ReadonlyArray<string>
  /** Whether the first of all is among them. */
  readonly fromFirst: boolean
}

/**
 * The waiters of this process for one fair lock, in their order. Reports name them in turn.
 */
export class FairPlaces {
  readonly #byOwner = new Map<string, FairWaiter>()
  readonly #order = new LinkedList<FairWaiter>()
  /** The first that the next report names. */
  #next: FairWaiter | undefined = undefined
  /** How many are to be named soon, as they may have lost their places. */
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

  /** Replies whether it was there. */
  remove(place: FairWaiter): boolean {
    if (!this.#byOwner.delete(place.owner)) return false
    if (this.#next === place) this.#next = place.behind
    this.#order.remove(place)
    return true
  }

  /** Whether reports are to follow each other until all have been named. */
  get isNamingAll(): boolean {
    return this.#toName > 0
  }

  /** Has all named, in their order. */
  nameAll(): void {
    this.#next = this.#order.first
    this.#toName = this.size
  }

  /** Those whom the next report names: those who are asking need no report. */
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
