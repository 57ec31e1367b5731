/**
 * How long a release waits that others may follow: at the end of a scope, after a section that has failed, as a client closes. While the store
 * is away, such releases share one release timeout, or a program that holds many locks would end late: after one that has given up, the
 * next waits no longer than has passed since. A release that is confirmed ends that.
 *
 * Of a cluster one server may be silent alone, and which slots a server serves is not known here. So a confirmed release speaks for its own slot
 * only; one that gives up puts all others in doubt.
 */
import type { LockClient } from "../client/LockClient.ts"
import type { LockRef } from "../kinds/kinds.ts"

export class ReleaseTime {
  /** When a release last gave up, on the monotonic clock. */
  #gaveUpAt = Number.NEGATIVE_INFINITY
  /** The slots of which a release has given up, and none was confirmed since: while there are any, the next have less time. */
  readonly #silent = new Set<string>()
  /** While there are any: the slots of which a release was confirmed. */
  readonly #answering = new Set<string>()

  /** What is left for a client that closes. */
  left({ now, options: { releaseTimeoutMillis } }: LockClient): number {
    if (this.#silent.size === 0) return releaseTimeoutMillis
    const passed = now() - this.#gaveUpAt
    if (passed < releaseTimeoutMillis) return passed
    this.#silent.clear()
    this.#answering.clear()
    return releaseTimeoutMillis
  }

  /** What is left for the release of a lock; undefined if that is the whole release timeout. */
  leftFor(lock: LockRef): number | undefined {
    const { client } = lock
    if (this.#silent.size === 0 || this.#answering.has(slotOf(lock))) return undefined
    const left = this.left(client)
    return left < client.options.releaseTimeoutMillis ? left : undefined
  }

  /** A release was not confirmed within the release timeout. */
  gaveUp(lock: LockRef): void {
    const slot = slotOf(lock)
    // the server that has fallen silent may serve more of them
    if (this.#answering.has(slot)) this.#answering.clear()
    this.#silent.add(slot)
    this.#gaveUpAt = lock.client.now()
  }

  /** A release was not confirmed within what was left for it: that says nothing about its server, but what waits next has no more. */
  gaveUpEarly({ client }: LockRef): void {
    this.#gaveUpAt = client.now()
  }

  /** The store has replied to a release. */
  answered(lock: LockRef): void {
    if (this.#silent.size === 0) return
    const slot = slotOf(lock)
    this.#silent.delete(slot)
    if (this.#silent.size > 0) this.#answering.add(slot)
    else this.#answering.clear()
  }
}

/** A slot of a client's store: a RedLock shares its time with the client of a member, whose server it does not need. */
const slotOf = ({ client, keys }: LockRef): string => `${client.clientId} ${client.store.slot(keys.lock)}`
