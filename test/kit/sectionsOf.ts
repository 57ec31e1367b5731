/**
 * A section under each kind of lock.
 */
import type { Effect } from "effect"
import {
  FairLock,
  FencedLock,
  Lock,
  MultiLock,
  NonReentrantLock,
  PermitSemaphore,
  ReadWriteLock,
  type RedisLock,
  RedLock,
  SpinLock,
  type TimeOptions
} from "effect-redis-lock"

const { readLock, writeLock } = ReadWriteLock.make("a")
const permits = PermitSemaphore.make("a", { permits: 1 })

export type Section = (
  body: Effect.Effect<void, unknown>,
  options?: TimeOptions
) => Effect.Effect<unknown, unknown, RedisLock.RedisLock>

const under =
  (lock: Lock.Lock<RedisLock.RedisLock, unknown, unknown>): Section =>
  (body, options) =>
    Lock.withLock(body, lock, options)

/** Each but one shuts out another of its kind. */
export const sectionsOf = {
  Lock: under(Lock.make("a")),
  FairLock: under(FairLock.make("a")),
  FencedLock: under(FencedLock.make("a")),
  NonReentrantLock: under(NonReentrantLock.make("a")),
  SpinLock: under(SpinLock.make("a")),
  "read lock": under(readLock),
  "write lock": under(writeLock),
  MultiLock: under(MultiLock.make([Lock.make("a"), Lock.make("b")])),
  RedLock: under(RedLock.make(["a", "b", "c"].map((name) => Lock.make(name)))),
  PermitSemaphore: (body, options?) => PermitSemaphore.withPermits(body, permits, 1, options)
} satisfies Record<string, Section>

export type SectionKind = keyof typeof sectionsOf
