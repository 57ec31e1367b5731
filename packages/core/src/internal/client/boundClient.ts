/**
 * The way from the service that locks find in the context, or are bound to, to its client.
 */
import * as Context from "effect/Context"
import * as Predicate from "effect/Predicate"
import { InvalidLockOptions } from "../../LockError.ts"
import { shown } from "../report/shown.ts"
import type { LockClient } from "./LockClient.ts"
import { OpaqueClient, RedisLock, TypeId } from "./RedisLock.ts"

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
