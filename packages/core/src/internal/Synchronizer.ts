import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { Fiber } from "effect/Fiber"
import * as Pipeable from "effect/Pipeable"
import { type InvalidLockName, InvalidLockOptions, type LockStoreError } from "../LockError.ts"
import type { Reply } from "../RedisDriver.ts"
import { RedisLock } from "../RedisLock.ts"
import { explain } from "./found.ts"
import { checkName } from "./keys.ts"
import type { LockClient } from "./LockClient.ts"
import type { Request } from "./LockKind.ts"

export type Invalid = InvalidLockName | InvalidLockOptions

/**
 * A semaphore or a latch as a value: checked when made, reported when used.
 */
export abstract class Synchronizer extends Pipeable.Class {
  /** In messages. */
  abstract readonly title: string
  readonly name: string
  readonly client: LockClient | undefined
  readonly invalid: Invalid | undefined

  constructor(name: string, client: LockClient | undefined, invalid: InvalidLockOptions | undefined) {
    super()
    this.name = name
    this.client = client
    this.invalid = checkName(name) ?? invalid
  }

  /** The client that serves it, or why none can. */
  clientOf(fiber: Fiber<unknown, unknown>): LockClient | Invalid {
    if (this.invalid !== undefined) return this.invalid
    const client =
      this.client ?? (Context.getUnsafe(fiber.context as Context.Context<RedisLock>, RedisLock) as LockClient)
    return client.isQuorum
      ? new InvalidLockOptions({ option: this.title, problem: "a quorum of servers cannot keep it; use one server" })
      : client
  }
}

/** Runs something with the client of a synchronizer and its name in Redis, unless there is something wrong with it. */
export const use = <A, E, R>(
  self: Synchronizer,
  f: (client: LockClient, key: string, fiber: Fiber<unknown, unknown>) => Effect.Effect<A, E, R>
): Effect.Effect<A, E | Invalid, R> =>
  Effect.withFiber<A, E | Invalid, R>((fiber) => {
    const client = self.clientOf(fiber)
    return "_tag" in client ? Effect.fail(client) : f(client, client.options.keyPrefix + self.name, fiber)
  })

/** Runs one operation; where the name belongs to something else than a synchronizer of this title, says to what. */
export const run = (
  client: LockClient,
  title: string,
  { args, keys, operation }: Request
): Effect.Effect<Reply, LockStoreError> =>
  Effect.catchCause(client.store.run(operation, keys, args), (cause) => explain(client, title, keys[0]!, cause))
