import { identity } from "effect/Function"
import type { CountDownLatch } from "../CountDownLatch.ts"
import type { LockClient } from "./LockClient.ts"
import { Synchronizer } from "./Synchronizer.ts"

export const TypeId = "~effect-redis-lock/CountDownLatch"

/** In messages. */
export const latchTitle = "CountDownLatch"

export class LatchImpl<R> extends Synchronizer implements CountDownLatch<R> {
  declare readonly [TypeId]: { readonly _R: (_: never) => R }
  readonly title = latchTitle

  constructor(name: string, client: LockClient | undefined) {
    super(name, client, undefined)
  }
}

Object.defineProperty(LatchImpl.prototype, TypeId, { value: { _R: identity } })

export const latchOf = <R>(latch: CountDownLatch<R> | string): LatchImpl<R> =>
  typeof latch === "string" ? new LatchImpl<R>(latch, undefined) : (latch as LatchImpl<R>)
