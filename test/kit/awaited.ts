/**
 * What can be waited for, all of it under the name "a": a lock of each kind, several at once, permits and a latch.
 */
import { Effect } from "effect"
import {
  type AcquireError,
  CountDownLatch,
  FairLock,
  FencedLock,
  type LatchTimeout,
  Lock,
  type LockLost,
  type LockReentered,
  MultiLock,
  NonReentrantLock,
  PermitSemaphore,
  ReadWriteLock,
  type RedisLock,
  Semaphore,
  SpinLock
} from "effect-redis-lock"

export type WaitFailure = AcquireError | LatchTimeout | LockLost | LockReentered

export interface Awaited {
  /** Succeeds as soon as it is let in. */
  readonly wait: (options?: Lock.AcquireOptions) => Effect.Effect<void, WaitFailure, RedisLock.RedisLock>
  /** Keeps others waiting until it is interrupted. */
  readonly held: Effect.Effect<void, WaitFailure, RedisLock.RedisLock>
  /** Opens what `held` does not open when it is interrupted. */
  readonly open?: Effect.Effect<unknown, WaitFailure, RedisLock.RedisLock>
}

const { readLock, writeLock } = ReadWriteLock.make("a")
const permits = PermitSemaphore.make("a", { permits: 1 })
const semaphore = Semaphore.make("a", { permits: 1 })

type AnyLock = Lock.Lock<RedisLock.RedisLock, LockReentered, any>

const locked = (lock: AnyLock, rival = lock): Awaited => ({
  wait: (options) => Lock.withLock(Effect.void, lock, options),
  held: Lock.withLock(Effect.never, rival)
})

export const awaited = {
  "a lock": locked(Lock.make("a")),
  "a fair lock": locked(FairLock.make("a")),
  "a fenced lock": locked(FencedLock.make("a")),
  "a spin lock": locked(SpinLock.make("a")),
  "a lock that is not reentrant": locked(NonReentrantLock.make("a")),
  "a read lock": locked(readLock, writeLock),
  "a write lock": locked(writeLock, readLock),
  "several locks at once": locked(MultiLock.make(["a", "b"]), Lock.make("b")),
  "a semaphore": {
    wait: (options) => Semaphore.withPermits(Effect.void, semaphore, 1, options),
    held: Semaphore.withPermits(Effect.never, semaphore, 1)
  },
  "a leased permit": {
    wait: (options) => PermitSemaphore.withPermit(Effect.void, permits, options),
    held: PermitSemaphore.withPermit(Effect.never, permits)
  },
  "a latch": {
    wait: (options) => CountDownLatch.await("a", options),
    held: Effect.andThen(CountDownLatch.trySetCount("a", 1), Effect.never),
    open: CountDownLatch.countDown("a")
  }
} satisfies Record<string, Awaited>
