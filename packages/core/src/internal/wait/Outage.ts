import type { LockStoreError } from "../../LockError.ts"
import { jittered } from "../time/clock.ts"

const shortestPauseMillis = 100
const longestPauseMillis = 5000

/**
 * The store's failures since it last answered. Most outages are short, so a waiter retries soon at first, then less and
 * less often. It cannot rely on a signal: the connection for messages may be back before the one for commands.
 */
export class Outage<Failure = LockStoreError> {
  /** The failure of the last request; undefined if it was answered, or there was none. */
  failure: Failure | undefined = undefined
  #failures = 0
  /** When the last failure that counts came, on the monotonic clock. */
  #countedAt = Number.NEGATIVE_INFINITY
  /** Whether the store has ever failed. */
  hasFailed = false

  /**
   * A request that was sent at `sentAt` has failed `now`, both on the monotonic clock. Requests that fail together with
   * their connection count as one failure: those sent before the last counted failure are not counted. A caller with one
   * request at a time may omit the times.
   */
  failed(failure: Failure, sentAt = Number.POSITIVE_INFINITY, now = Number.NEGATIVE_INFINITY): void {
    this.failure = failure
    this.hasFailed = true
    if (this.#failures > 0 && sentAt <= this.#countedAt) return
    this.#failures++
    this.#countedAt = now
  }

  answered(): void {
    this.failure = undefined
    this.#failures = 0
  }

  /**
   * How long to wait for a message before the next request, in milliseconds: the whole interval, but after failures less. Jittered, so that processes do not send
   * their requests together.
   */
  pauseMillis(intervalMillis: number): number {
    if (this.#failures === 0) return jittered(intervalMillis)
    const pause = shortestPauseMillis * 2 ** (this.#failures - 1)
    return jittered(Math.min(pause, longestPauseMillis, intervalMillis))
  }
}
