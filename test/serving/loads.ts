/**
 * What the processes use whose service is measured, and the bound that docs/contention.md names for it.
 */
import { Effect } from "effect"
import {
  FairLock,
  FencedLock,
  Lock,
  MultiLock,
  NonReentrantLock,
  PermitSemaphore,
  ReadWriteLock,
  type RedisLock,
  Semaphore,
  SpinLock
} from "effect-redis-lock"

type Use = (
  name: string,
  process: number
) => <A>(section: Effect.Effect<A>) => Effect.Effect<A, unknown, RedisLock.RedisLock>

const under =
  (make: (name: string) => Lock.Lock<RedisLock.RedisLock, any, any>): Use =>
  (name) => {
    const lock = make(name)
    return (section) => Lock.withLock(section, lock)
  }

/** The load of which only the first process is judged. */
export const besideMultiLocks = "Lock that is a member of MultiLocks"

export const loads = {
  Lock: under(Lock.make),
  FencedLock: under(FencedLock.make),
  NonReentrantLock: under(NonReentrantLock.make),
  FairLock: under(FairLock.make),
  writeLock: under((name) => ReadWriteLock.make(name).writeLock),
  "readLock and writeLock in turn": (name) => {
    const { readLock, writeLock } = ReadWriteLock.make(name)
    let visits = 0
    return (section) => Lock.withLock(section, visits++ % 2 === 0 ? writeLock : readLock)
  },
  "MultiLock of two": under((name) => MultiLock.make([`{${name}}:a`, `{${name}}:b`])),
  "MultiLock beside its members": (name) => {
    const [a, b] = [`{${name}}:a`, `{${name}}:b`] as const
    const both = MultiLock.make([a, b])
    let visits = 0
    return (section) => {
      const turn = visits++ % 3
      return turn === 0 ? Lock.withLock(section, both) : Lock.withLock(section, turn === 1 ? a : b)
    }
  },
  // one process uses a member, the others both at once
  [besideMultiLocks]: (name, process) => {
    const [a, b] = [`{${name}}:a`, `{${name}}:b`] as const
    const lock = process === 0 ? Lock.make(a) : MultiLock.make([a, b])
    return (section) => Lock.withLock(section, lock)
  },
  "Semaphore of three": (name) => {
    const semaphore = Semaphore.make(name, { permits: 3 })
    return (section) => Semaphore.withPermits(section, semaphore, 1)
  },
  "PermitSemaphore of three": (name) => {
    const semaphore = PermitSemaphore.make(name, { permits: 3 })
    return (section) => PermitSemaphore.withPermits(section, semaphore, 1)
  },
  SpinLock: under(SpinLock.make)
} satisfies Record<string, Use>

export type LoadName = keyof typeof loads
