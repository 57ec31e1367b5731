/**
 * Finds the client behind a service, whether the service comes from the context or is bound to a lock.
 */
import * as Context from "effect/Context"
import * as Predicate from "effect/Predicate"
import { InvalidLockOptions } from "../../LockError.ts"
import { shown } from "../report/shown.ts"
import type { LockClient } from "./LockClient.ts"
import { OpaqueClient, RedisLock, TypeId } from "./RedisLock.ts"

const explanation = "is not a RedisLock service: only the layers of RedisLock make one"

/** The client of a service; undefined if the value is not a service. */
export const boundClient = (service: unknown): LockClient | undefined => {
  const client = Predicate.hasProperty(service, TypeId) ? service[TypeId] : undefined
  return OpaqueClient.isOne(client) ? (client as LockClient) : undefined
}

/** The problem with a service that a lock is bound to. */
export const checkService = (service: unknown): InvalidLockOptions | undefined =>
  boundClient(service) === undefined
    ? new InvalidLockOptions({ option: "provide", problem: `${shown(service)} ${explanation}` })
    : undefined

/** The client of the service in a context, such as a fiber's. */
export const clientIn = (context: Context.Context<never>): LockClient => {
  const service = Context.getUnsafe(context as Context.Context<RedisLock>, RedisLock)
  const client = boundClient(service)
  if (client === undefined) throw new TypeError(`${shown(service)} ${explanation}`)
  return client
}
