import { identity } from "effect/Function"
import type { CountDownLatch } from "../../CountDownLatch.ts"
import { InvalidLockName } from "../../LockError.ts"
import { latchTitle } from "../protocol/latch.ts"
import { latchChannel, type LockKeys } from "../store/keys.ts"
import { isMade, Synchronizer } from "./Synchronizer.ts"

export const TypeId = "~effect-redis-lock/CountDownLatch"

export class LatchImpl<R> extends Synchronizer implements CountDownLatch<R> {
  declare readonly [TypeId]: { readonly _R: (_: never) => R }
  readonly title = latchTitle

  override checkSlot({ lock }: LockKeys, slot: (key: string) => number): InvalidLockName | undefined {
    return slot(lock) === slot(latchChannel(lock))
      ? undefined
      : new InvalidLockName({
          lock: this.name,
          problem: "on a Redis Cluster, Redisson keeps the channel of a latch with braces in its name in another slot"
        })
  }
}

Object.defineProperty(LatchImpl.prototype, TypeId, { value: { _R: identity } })

export const latchOf = <R>(latch: CountDownLatch<R> | string): LatchImpl<R> =>
  isMade(latch, TypeId) ? (latch as LatchImpl<R>) : new LatchImpl<R>(latch as string, undefined)
