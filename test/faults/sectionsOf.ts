/**
 * A section under each kind of lock, for the process that is stopped and for its rival.
 */
import type { Effect } from "effect"
import { FairLock, Lock, MultiLock, PermitSemaphore, ReadWriteLock, type RedisLock, RedLock } from "effect-redis-lock"

const lock = Lock.make("report")
const { readLock, writeLock } = ReadWriteLock.make("report")
const semaphore = PermitSemaphore.make("report", { permits: 1 })
const three = ["report:1", "report:2", "report:3"].map((name) => Lock.make(name))

type Section = <A, E>(body: Effect.Effect<A, E>) => Effect.Effect<A, unknown, RedisLock.RedisLock>

interface Sides {
  readonly holder: Section
  /** Shuts the holder out. */
  readonly rival: Section
}

const alike = (section: Section): Sides => ({ holder: section, rival: section })

export const sectionsOf = {
  lock: alike((body) => Lock.withLock(body, lock)),
  "fair lock": alike((body) => Lock.withLock(body, FairLock.make("report"))),
  "read lock": {
    holder: (body) => Lock.withLock(body, readLock),
    rival: (body) => Lock.withLock(body, writeLock)
  },
  "write lock": alike((body) => Lock.withLock(body, writeLock)),
  permit: alike((body) => PermitSemaphore.withPermits(body, semaphore, 1)),
  MultiLock: alike((body) => Lock.withLock(body, MultiLock.make([lock, Lock.make("ledger")]))),
  RedLock: alike((body) => Lock.withLock(body, RedLock.make(three)))
} satisfies Record<string, Sides>
