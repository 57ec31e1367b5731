/**
 * The service that locks find in the context, and the way from it to its client.
 */
import * as Context from "effect/Context"
import * as Predicate from "effect/Predicate"
import { InvalidLockOptions } from "../../LockError.ts"
import { shown } from "../report/shown.ts"
import type { LockClient } from "./LockClient.ts"

export const TypeId = "~effect-redis-lock/RedisLock"

/** What a service shows of its client: nothing. {@link LockClient} is the only one, and nobody else can make one. */
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

const explanation = "is not a RedisLock service: only the layers of RedisLock make one"

/** The client of a service; undefined of whatever else was passed for one. */
export const boundClient = (service: unknown): LockClient | undefined => {
  const client = Predicate.hasProperty(service, TypeId) ? service[TypeId] : undefined
  return OpaqueClient.isOne(client) ? (client as LockClient) : undefined
}

/** What is wrong with the service that a lock is to be bound to. */
export const checkService = (service: unknown): InvalidLockOptions | undefined =>
  boundClient(service) === undefined
    ? new InvalidLockOptions({ option: "provide", problem: `${shown(service)} ${explanation}` })
    : undefined

/** The client of the service in a context, which may be a fiber's. */
export const clientIn = (context: Context.Context<never>): LockClient => {
  const service = Context.getUnsafe(context as Context.Context<RedisLock>, RedisLock)
  const client = boundClient(service)
  if (client === undefined) throw new TypeError(`${shown(service)} ${explanation}`)
  return client
}
