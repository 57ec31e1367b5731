/**
 * The service that locks find in the context.
 */
import * as Context from "effect/Context"

export const TypeId = "~effect-redis-lock/RedisLock"

/** What a service shows of its client: nothing. `LockClient` is the only one, and nobody else can make one. */
export abstract class OpaqueClient {
  /** Private, so that nothing else has the type. */
  readonly #isOne = true

  static isOne(u: unknown): u is OpaqueClient {
    return u instanceof OpaqueClient && u.#isOne
  }
}

export interface Service {
  readonly [TypeId]: OpaqueClient
  readonly clientId: string
}

export class RedisLock extends Context.Service<RedisLock, Service>()("effect-redis-lock/RedisLock") {}
