import { identity } from "effect/Function"
import * as Predicate from "effect/Predicate"
import { InvalidLockName } from "../../LockError.ts"
import { latchTitle } from "../kinds/kinds.ts"
import { latchChannel, type LockKeys } from "../store/keys.ts"
import { Synchronizer } from "./Synchronizer.ts"

export const TypeId = "~effect-redis-lock/CountDownLatch"

export type PublicCountDownLatch<R> = Pick<LatchImpl<R>, typeof TypeId | "name">

export class LatchImpl<R> extends Synchronizer {
  declare readonly [TypeId]: { readonly _R: (_: never) => R }
  readonly title = latchTitle
  override readonly checkSlot = checkChannelSlot
}

const checkChannelSlot = (
  name: string,
  { lock }: LockKeys,
  slot: (key: string) => number
): InvalidLockName | undefined =>
  slot(lock) === slot(latchChannel(lock))
    ? undefined
    : new InvalidLockName({
        lock: name,
        problem: "on a Redis Cluster, Redisson keeps the channel of a latch with braces in its name in another slot"
      })

Object.defineProperty(LatchImpl.prototype, TypeId, { value: { _R: identity } })

export const latchOf = <R>(latch: PublicCountDownLatch<R> | string): LatchImpl<R> =>
  Predicate.hasProperty(latch, TypeId) ? (latch as LatchImpl<R>) : new LatchImpl<R>(latch as string, undefined)
