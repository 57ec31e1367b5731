/**
 * Kinds that cannot be under one name, as far as they can be told apart, say so.
 */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import {
  type AcquireError,
  FairLock,
  FencedLock,
  Lock,
  type LockLost,
  type LockReentered,
  NonReentrantLock,
  ReadWriteLock,
  type RedisLock,
  SpinLock
} from "effect-redis-lock"
import type { AnyLock, Contract } from "./contract.ts"

type Kinds = ReadonlyArray<readonly [title: string, make: (name: string) => AnyLock]>

const exclusive: Kinds = [
  ["Lock", Lock.make],
  ["FencedLock", FencedLock.make],
  ["SpinLock", SpinLock.make],
  ["NonReentrantLock", NonReentrantLock.make]
]

/** Which a quorum refuses. */
const queued: Kinds = [
  ["FairLock", FairLock.make],
  ["fair NonReentrantLock", (name) => NonReentrantLock.make(name, { fair: true })]
]

const sides: Kinds = [
  ["ReadWriteLock", (name) => ReadWriteLock.make(name).readLock],
  ["ReadWriteLock", (name) => ReadWriteLock.make(name).writeLock]
]

const assertWrongKind = (asked: AnyLock, expected: string, found: string) =>
  Effect.gen(function* () {
    for (const [use, run] of Object.entries({
      withLock: Lock.withLock(Effect.void, asked),
      withoutWaiting: Lock.withLock(Effect.void, asked, { waitTime: 0 }),
      tryScoped: Effect.scoped(Lock.tryScoped(asked)),
      isLocked: Lock.isLocked(asked),
      remainingTime: Lock.remainingTime(asked),
      forceRelease: Lock.forceRelease(asked)
    })) {
      const error = yield* Effect.flip(
        run as Effect.Effect<unknown, AcquireError | LockLost | LockReentered, RedisLock.RedisLock>
      )
      assert.strictEqual(error._tag === "LockStoreError" ? error.reason : error._tag, "WrongType", use)
      assert.include(error.message, `"${asked.name}" is not a ${expected}: the name is taken by ${found}`, use)
    }
  })

export const wrongKinds = ({ elsewhere, freshName, holdElsewhere, isQuorum, suite }: Contract): void => {
  suite("a name of another kind", (test) => {
    for (const [title, make] of isQuorum ? exclusive : [...exclusive, ...queued]) {
      for (const [otherTitle, makeOther] of sides) {
        test(`Using one name for ${title} and a side of ${otherTitle} fails, either way`, function* () {
          const name = freshName()
          const one = yield* holdElsewhere(make(name))
          yield* assertWrongKind(makeOther(name), otherTitle, "a lock of another kind")
          yield* elsewhere(assertWrongKind(makeOther(name), otherTitle, "a lock of another kind"))
          yield* one.holding.ensureHeld
          assert.isTrue(yield* Lock.isLocked(make(name)))
          yield* one.letGo
          const other = yield* holdElsewhere(makeOther(name))
          yield* assertWrongKind(make(name), title, "a ReadWriteLock")
          assert.isTrue(yield* Lock.isLocked(makeOther(name)))
          yield* other.letGo
        })
      }
    }
  })
}
