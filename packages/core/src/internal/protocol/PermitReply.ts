/**
 * What a semaphore answers: what was granted, if anything; how many permits are free now; in how many milliseconds a lease
 * ends (below zero: not known); and whether there is such a semaphore.
 */
export interface PermitReply<A> {
  readonly granted: A | undefined
  readonly available: number
  readonly remaining: number
  readonly exists: boolean
}
