/**
 * The guards of the public modules.
 */
import { assert, it } from "@effect/vitest"
import {
  CountDownLatch,
  FairLock,
  Lock,
  MultiLock,
  NonReentrantLock,
  PermitSemaphore,
  ReadWriteLock,
  RedLock,
  Semaphore,
  SpinLock
} from "effect-redis-lock"

const locks: ReadonlyArray<unknown> = [
  Lock.make("a"),
  Lock.make("", { waitTime: -1 }),
  FairLock.make("a"),
  NonReentrantLock.make("a"),
  SpinLock.make("a"),
  ReadWriteLock.make("a").readLock,
  ReadWriteLock.make("a").writeLock,
  MultiLock.make([Lock.make("a"), Lock.make("b")]),
  RedLock.make([Lock.make("a")])
]

const values: Record<string, ReadonlyArray<unknown>> = {
  isLock: locks,
  isSemaphore: [Semaphore.make("a"), Semaphore.make("a", { permits: 2 })],
  isPermitSemaphore: [PermitSemaphore.make("a"), PermitSemaphore.make("a", { permits: 2 })],
  isCountDownLatch: [CountDownLatch.make("a")],
  none: ["a", 5, null, undefined, {}, [], ReadWriteLock.make("a"), Lock.make]
}

const guards: Record<string, (u: unknown) => boolean> = {
  isLock: Lock.isLock,
  isSemaphore: Semaphore.isSemaphore,
  isPermitSemaphore: PermitSemaphore.isPermitSemaphore,
  isCountDownLatch: CountDownLatch.isCountDownLatch
}

for (const [name, guard] of Object.entries(guards)) {
  it(`${name} is true of the values that its module makes, and of nothing else`, () => {
    for (const [of, some] of Object.entries(values)) {
      for (const value of some) assert.strictEqual(guard(value), of === name, `${of}: ${String(value)}`)
    }
  })
}
