/**
 * The service that locks take from the context.
 */
import * as Context from "effect/Context"

export const TypeId = "~effect-redis-lock/RedisLock"

/** An opaque view of the client: only `LockClient` has this type. */
export abstract class OpaqueClient {
  /** Not public, so that no other class has the type. */
  protected readonly isOne = true
}

export interface Service {
  readonly [TypeId]: OpaqueClient
  readonly clientId: string
}

export class RedisLock extends Context.Service<RedisLock, Service>()("effect-redis-lock/RedisLock") {}
