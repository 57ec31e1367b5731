/**
 * What the fault tests of quorums share: several independent servers, and locks on a majority of them.
 */
import { serviceOf } from "../kit/testStore.ts"
import { RedisServer } from "@effect-redis-lock/testing"
import { assert } from "@effect/vitest"
import { Effect, Exit, type Scope } from "effect"
import { Lock, RedisLock, RedLock } from "effect-redis-lock"
import type { Redis } from "ioredis"
import { type ClientOptions, locks } from "../kit/clients.ts"
import { eventually } from "../kit/eventually.ts"
import { isLasting } from "../kit/server/lastingKeys.ts"
import { bare } from "../kit/server/bareRedis.ts"

/** A server, and a client that looks at it from outside. */
export interface Place {
  readonly server: RedisServer.RedisServer
  readonly redis: Redis
}

/** So many servers for the rest of a test; where they still run, no lock may be left at its end. */
export const onServers = (
  count: number
): Effect.Effect<ReadonlyArray<Place>, RedisServer.RedisServerError, Scope.Scope> =>
  Effect.gen(function* () {
    const places = yield* Effect.forEach(
      Array.from({ length: count }),
      Effect.fnUntraced(function* () {
        const server = yield* RedisServer.start()
        return { server, redis: yield* bare(server) }
      }),
      { concurrency: "unbounded" }
    )
    const running = Effect.suspend(() =>
      Effect.forEach(
        places.filter(({ redis }) => redis.status === "ready"),
        ({ redis }) => noLockLeft(redis)
      )
    )
    yield* Effect.addFinalizer((exit) => (Exit.isSuccess(exit) ? Effect.interruptible(running) : Effect.void))
    return places
  })

/** Waits until there is nothing of ours but last tokens. */
export const noLockLeft = (redis: Redis) =>
  eventually(
    "no key is left but what lasts",
    () => redis.keys("*"),
    (keys) => keys.every(isLasting)
  )

export type Service = RedisLock.RedisLock["Service"]

export const serviceAt = (at: { readonly url: string }, options?: ClientOptions) => serviceOf(locks(at, options))

/** Services of all these servers: one process. */
export const process = (
  places: ReadonlyArray<{ readonly server: { readonly url: string } }>,
  options?: ClientOptions
) => Effect.forEach(places, ({ server }) => serviceAt(server, options), { concurrency: "unbounded" })

/**
 * The lock of one name on all these services, or of as many names. By default members may take as long as a busy machine lets them: who waits for
 * one that hangs is noticed by that.
 */
export const redLock = (
  services: ReadonlyArray<Service>,
  names: string | ReadonlyArray<string>,
  options?: RedLock.RedLockOptions
) =>
  RedLock.make(
    services.map((service, i) => Lock.provide(Lock.make(typeof names === "string" ? names : names[i]!), service)),
    { memberTimeout: "1 minute", ...options }
  )

/** Whether each of the servers has the key at this moment. */
export const keyAt = (places: ReadonlyArray<Place>, key: string) =>
  Effect.forEach(places, ({ redis }) => Effect.promise(() => redis.exists(key)))

export const assertFreeAt = Effect.fnUntraced(function* (places: ReadonlyArray<Place>, key: string) {
  assert.deepStrictEqual(
    yield* keyAt(places, key),
    places.map(() => 0)
  )
})

/** Waits until all servers that are asked have the key, or none has. */
export const keyEverywhere = (places: ReadonlyArray<Place>, key: string, is: "there" | "gone") =>
  eventually(
    `the key "${key}" is ${is} everywhere`,
    () => Promise.all(places.map(({ redis }) => redis.exists(key))),
    (counts) => counts.every((count) => count === (is === "there" ? 1 : 0))
  )
