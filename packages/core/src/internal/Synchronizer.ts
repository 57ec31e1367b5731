import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { Fiber } from "effect/Fiber"
import * as Pipeable from "effect/Pipeable"
import type { InvalidLockName, LockStoreError } from "../LockError.ts"
import type { Reply } from "../RedisDriver.ts"
import { RedisLock } from "../RedisLock.ts"
import { explain } from "./found.ts"
import { checkName } from "./keys.ts"
import type { LockClient } from "./LockClient.ts"
import type { Request } from "./LockKind.ts"

/**
 * A semaphore or a latch as a value: checked when made, reported when used. `Invalid` is what may be wrong with it.
 */
export abstract class Synchronizer<Invalid = never> extends Pipeable.Class {
  readonly name: string
  readonly client: LockClient | undefined
  readonly invalid: InvalidLockName | Invalid | undefined

  constructor(name: string, client: LockClient | undefined, invalid: Invalid | undefined) {
    super()
    this.name = name
    this.client = client
    this.invalid = checkName(name) ?? invalid
  }

  clientOf(fiber: Fiber<unknown, unknown>): LockClient {
    return this.client ?? (Context.getUnsafe(fiber.context as Context.Context<RedisLock>, RedisLock) as LockClient)
  }
}

/** Runs something with the client of a synchronizer and its name in Redis, unless there is something wrong with it. */
export const use = <Invalid, A, E, R>(
  self: Synchronizer<Invalid>,
  f: (client: LockClient, key: string, fiber: Fiber<unknown, unknown>) => Effect.Effect<A, E, R>
): Effect.Effect<A, E | InvalidLockName | Exclude<Invalid, undefined>, R> =>
  Effect.withFiber<A, E | InvalidLockName | Exclude<Invalid, undefined>, R>((fiber) => {
    if (self.invalid !== undefined) return Effect.fail(self.invalid as InvalidLockName | Exclude<Invalid, undefined>)
    const client = self.clientOf(fiber)
    return f(client, client.options.keyPrefix + self.name, fiber)
  })

/** Runs one operation; where the name belongs to something else than a synchronizer of this title, says to what. */
export const run = (
  client: LockClient,
  title: string,
  { args, keys, operation }: Request
): Effect.Effect<Reply, LockStoreError> =>
  Effect.catchCause(client.store.run(operation, keys, args), (cause) => explain(client, title, keys[0]!, cause))
