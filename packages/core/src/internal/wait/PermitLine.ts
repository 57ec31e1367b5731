/**
 * The line for the permits of a semaphore, whose waiters may want several. The turn goes to the first for which the free permits are enough, even
 * behind one that wants more; unless they are kept for that one, since it has waited long.
 */
import { isKept, nothing, type PermitsReply, uncounted, type Want } from "../store/operations/semaphore.ts"
import { Line, LinkedList, type Waiter } from "./Line.ts"

export class PermitLine extends Line {
  /** How many requests may have taken a place in Redis for this client since it last certainly had none. */
  mayHavePlace = 0
  /** The last reply to a request that was denied. */
  denial: PermitsReply | undefined = undefined
  /** By that reply. */
  supply = uncounted()
  /** By the number of permits they want, each list in order of arrival. */
  readonly #groups = new Map<number, LinkedList<Waiter>>()
  /** When the head last left, or the line began, on the monotonic clock. */
  #headLeftAt = this.client.now()
  /** When permits were last granted to a waiter. */
  #servedAt = Number.NEGATIVE_INFINITY

  protected override get first(): Waiter | undefined {
    return this.#first(Number.POSITIVE_INFINITY)
  }

  /** The first waiter for which this number of free permits is enough; none, if they are kept for the head. */
  override firstFor(free: number): Waiter | undefined {
    const kept = this.#keptFor
    return kept !== undefined && kept.permits > free ? undefined : this.#first(free)
  }

  protected override add(waiter: Waiter): void {
    let group = this.#groups.get(waiter.permits)
    if (group === undefined) this.#groups.set(waiter.permits, (group = new LinkedList()))
    group.add(waiter)
  }

  protected override remove(waiter: Waiter): void {
    if (this.head === waiter) this.#headLeftAt = this.client.now()
    const group = this.#groups.get(waiter.permits)!
    group.remove(waiter)
    if (group.first === undefined) this.#groups.delete(waiter.permits)
  }

  protected override forEach(f: (waiter: Waiter) => void): void {
    for (const { first } of this.#groups.values()) {
      for (let waiter = first; waiter !== undefined; waiter = waiter.behind) f(waiter)
    }
  }

  /** The permits with which a missing semaphore is created, if any waiter says so. */
  get initial(): number | undefined {
    return this.waiters.find(({ initial }) => initial !== undefined)?.initial
  }

  /** The oldest that does not want more permits than there are. */
  get head(): Waiter | undefined {
    return this.#first(this.supply.total)
  }

  /** The head, if free permits are kept for it. */
  get #keptFor(): Waiter | undefined {
    const { head, supply } = this
    if (head === undefined) return undefined
    return isKept(this.client.now() - this.#headSince(head), head.permits, supply) ? head : undefined
  }

  /** Whether a request for permits would jump the line. */
  isAhead(permits: number): boolean {
    return this.#keptFor !== undefined || this.#first(permits) !== undefined
  }

  /** What the waiters want, other than `except` once it is served. */
  wantWithout(except: Waiter | undefined): Want {
    const kept = this.#keptFor
    const next = kept === undefined || kept === except ? this.#least(except) : kept
    if (next === undefined) return nothing
    const now = this.client.now()
    const lastServed = except === undefined ? this.#servedAt : now
    const since = next === this.head ? this.#headSince(next) : Math.max(next.joinedAt, lastServed)
    return { permits: next.permits, waitedMillis: Math.round(now - since) }
  }

  /** A waiter leaves because it got its permits; so many are still `free`. */
  served(waiter: Waiter, free: number): void {
    if (waiter.permits + free > this.supply.total) this.supply = { ...this.supply, total: Number.POSITIVE_INFINITY }
    this.#servedAt = this.client.now()
    this.leave(waiter, free)
  }

  #first(free: number): Waiter | undefined {
    let first: Waiter | undefined
    for (const [permits, group] of this.#groups) {
      const waiter = group.first!
      if (permits <= free && (first === undefined || waiter.number < first.number)) first = waiter
    }
    return first
  }

  /** The first of those that want the fewest permits, without `except`. */
  #least(except: Waiter | undefined): Waiter | undefined {
    let least: Waiter | undefined
    for (const { first } of this.#groups.values()) {
      const waiter = first === except ? first?.behind : first
      if (waiter !== undefined && (least === undefined || waiter.permits < least.permits)) least = waiter
    }
    return least
  }

  /** Since when it has been the head: those before it may have left long before it joined, and others wait in vain. */
  #headSince({ joinedAt }: Waiter): number {
    return Math.max(this.#headLeftAt, joinedAt)
  }
}
