/**
 * What clients take turns on while their master is replaced, and what they note about it.
 */
import type { Effect } from "effect"
import { Lock, PermitSemaphore, ReadWriteLock, type RedisLock, Semaphore } from "effect-redis-lock"

/** The number of permits of both semaphores. */
export const permits = 3

export const semaphore = (prefix: string) => Semaphore.make(`${prefix}:semaphore`, { permits })
export const permitSemaphore = (prefix: string) => PermitSemaphore.make(`${prefix}:permits`, { permits })

type Use = (
  prefix: string,
  turn: number
) => <A>(section: Effect.Effect<A>) => Effect.Effect<A, unknown, RedisLock.RedisLock>

/** How one of them is used. Each fiber reads and writes in turn: none goes on if readers, or writers, do not. */

export const kinds = {
  Lock: (prefix) => Lock.withLock(`${prefix}:lock`),
  ReadWriteLock: (prefix, turn) => {
    const { readLock, writeLock } = ReadWriteLock.make(`${prefix}:read-write`)
    return Lock.withLock(turn % 2 === 0 ? writeLock : readLock)
  },
  Semaphore: (prefix) => Semaphore.withPermits(semaphore(prefix), 1),
  PermitSemaphore: (prefix) => PermitSemaphore.withPermits(permitSemaphore(prefix), 1)
} as const satisfies Readonly<Record<string, Use>>
export type Kind = keyof typeof kinds
export const kindNames = Object.keys(kinds) as ReadonlyArray<Kind>

/** One request. Its times are epoch milliseconds of the monotonic clock, so that processes of one machine can compare them. */
export interface Turn {
  readonly kind: Kind
  readonly askedAt: number
  /** Absent if it was not granted. */
  readonly enteredAt?: number | undefined
  readonly endedAt: number
  /** The reason, if it failed. */
  readonly failure?: string | undefined
}

/** A moment at which a process had been kept from running. */
export interface Stall {
  readonly at: number
  readonly millis: number
}

export const now = () => performance.timeOrigin + performance.now()

/** Notes each time the event loop is more than 200 ms late. */
export const watchStalls = (stalls: Array<Stall>): (() => void) => {
  let expected = now() + 50
  const timer = setInterval(() => {
    const at = now()
    if (at - expected > 200) stalls.push({ at, millis: at - expected })
    expected = at + 50
  }, 50)
  return () => clearInterval(timer)
}
