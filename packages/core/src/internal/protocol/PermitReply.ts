/**
 * The reply of a semaphore: the grant, if any; how many permits are free now; in how many milliseconds a lease ends
 * (unknown if below zero); and whether the semaphore exists.
 */
export interface PermitReply<A> {
  readonly granted: A | undefined
  readonly available: number
  readonly remaining: number
  readonly exists: boolean
}
