/**
 * Work that is done once: its result is a record beside the lock under which it was done.
 */
import * as Effect from "effect/Effect"
import { identity } from "effect/Function"
import * as Option from "effect/Option"
import * as Pipeable from "effect/Pipeable"
import type * as Schema from "effect/Schema"
import { type AcquireError, type LockLost, type LockReentered, LockStoreError } from "../../LockError.ts"
import type { Service } from "../client/RedisLock.ts"
import type { Hold } from "../hold/Hold.ts"
import { LockImpl } from "../locks/LockImpl.ts"
import type { Resolved } from "../locks/Resolved.ts"
import { parsePeriod } from "../options/durations.ts"
import { type Invalid, isInvalid } from "../options/invalid.ts"
import { nonReentrant } from "../protocol/exclusive.ts"
import { printsAs } from "../report/printsAs.ts"
import { read } from "../store/operations/record.ts"
import { isRetryable } from "../store/transient.ts"
import { awaitRecord } from "./awaitRecord.ts"
import type { JsonText } from "./jsonText.ts"
import { writeRecord } from "./Leadership.ts"
import { readWithRetry } from "./watchRecord.ts"
import { withHold, withHoldIfAvailable } from "./withHold.ts"

export const TypeId = "~effect-redis-lock/RunOnce"

type Reentered = LockReentered

export class RunOnceImpl<A, R> extends Pipeable.Class {
  declare readonly [TypeId]: { readonly _A: (_: A) => A; readonly _R: (_: never) => R }
  readonly lock: LockImpl<R, Reentered>
  readonly json: JsonText<A>
  readonly lifeMillis: number

  constructor(lock: LockImpl<R, Reentered>, json: JsonText<A>, lifeMillis: number) {
    super()
    this.lock = lock
    this.json = json
    this.lifeMillis = lifeMillis
  }

  get name(): string {
    return this.lock.name
  }

  provide(service: Service): RunOnceImpl<A, never> {
    return new RunOnceImpl<A, never>(
      this.lock.provide(service) as LockImpl<never, Reentered>,
      this.json,
      this.lifeMillis
    )
  }
}

Object.defineProperty(RunOnceImpl.prototype, TypeId, { value: { _A: identity, _R: identity } })

printsAs(RunOnceImpl.prototype, ({ name }) => ({ _id: "effect-redis-lock/RunOnce", name }))

export const makeRunOnce = <A, R>(
  name: string,
  json: JsonText<A>,
  ttl: Parameters<typeof parsePeriod>[1]
): RunOnceImpl<A, R> => {
  const lifeMillis = parsePeriod("ttl", ttl)
  const lock = new LockImpl<R, Reentered>(name, nonReentrant, undefined, undefined)
  return typeof lifeMillis === "number"
    ? new RunOnceImpl(lock, json, lifeMillis)
    : new RunOnceImpl(
        new LockImpl<R, Reentered>(name, nonReentrant, undefined, undefined, lock.invalid ?? lifeMillis),
        json,
        0
      )
}

/** The text of the result, if there is one. */
const look = ({ client, keys }: Resolved): Effect.Effect<string | undefined, LockStoreError> =>
  Effect.map(client.store.run(read(keys, "result")), ({ record }) => record?.value)

export const resultOf = <A>(
  once: RunOnceImpl<A, unknown>
): Effect.Effect<Option.Option<A>, LockStoreError | Invalid | Schema.SchemaError> =>
  Effect.withFiber<Option.Option<A>, LockStoreError | Invalid | Schema.SchemaError>((fiber) => {
    const at = once.lock.resolve(fiber)
    if (isInvalid(at)) return Effect.fail(at)
    return Effect.flatMap(look(at), (text) =>
      text === undefined ? Effect.succeedNone : Effect.asSome(once.json.decode(text))
    )
  })

type RunError = AcquireError | LockLost | Reentered | Schema.SchemaError

export const runOnce = <A, E, R>(
  once: RunOnceImpl<A, unknown>,
  self: Effect.Effect<A, E, R>
): Effect.Effect<A, E | RunError, R> =>
  Effect.withFiber<A, E | RunError, R>((fiber) => {
    const at = once.lock.resolve(fiber)
    if (isInvalid(at)) return Effect.fail(at)
    const { client, keys } = at
    const { json, lifeMillis, lock } = once
    let isRunning = false
    /** Looks again first, as the previous holder may have done the work. */
    const underLock = (hold: Hold): Effect.Effect<A, E | LockLost | LockStoreError | Schema.SchemaError, R> =>
      Effect.flatMap(look(at), (text) => {
        if (text !== undefined) return json.decode(text)
        isRunning = true
        return Effect.flatMap(self, (result) =>
          Effect.flatMap(json.encode(result), (value) =>
            Effect.as(writeRecord(client, hold, "result", { value, version: 1, lifeMillis }), result)
          )
        )
      })
    // a record that this process writes must not interrupt its own section
    const byOthers = Effect.flatMap(awaitRecord(client, keys, "result"), ({ value }) =>
      isRunning ? Effect.never : json.decode(value)
    )
    /** Treats a transient failure before anything has run like a lock that is taken: it waits. */
    const asking = <B, E2, R2>(self: Effect.Effect<Option.Option<B>, E2, R2>) =>
      Effect.catchIf(
        self,
        (error) => !isRunning && error instanceof LockStoreError && isRetryable(error),
        () => Effect.succeedNone
      )
    return Effect.flatMap(readWithRetry(client, keys, "result"), ({ record }): Effect.Effect<A, E | RunError, R> => {
      if (record !== undefined) return json.decode(record.value)
      const waiting = Effect.raceFirst(withHold(lock, underLock), byOthers)
      return Effect.flatMap(asking(withHoldIfAvailable(lock, underLock)), (result): Effect.Effect<A, E | RunError, R> =>
        Option.isSome(result) ? Effect.succeed(result.value) : waiting
      )
    })
  })
