/**
 * Clients of the library as an application would build them: over ioredis, in real time.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { Effect, Layer, type Scope } from "effect"
import { RedisDriver, RedisLock } from "effect-redis-lock"
import type { Redis } from "ioredis"
import { onlyMessages } from "./onlyMessages.ts"
import { reconnectsAtOnce } from "./server/bareRedis.ts"

/** Options of a client, of its driver and of ioredis. */
export interface ClientOptions extends RedisLock.RedisLockOptions, Omit<IoRedis.IoRedisOptions, "url"> {}

/** The library over a driver. Leases last 30 seconds: on a busy machine a process may get nowhere for longer than a short one. */
export const locksOver = <E>(driver: Layer.Layer<RedisDriver.RedisDriver, E>, options?: RedisLock.RedisLockOptions) =>
  RedisLock.layer({ fallbackInterval: "200 millis", ...options }).pipe(
    onlyMessages(options ?? {}),
    Layer.provide(driver)
  )

/** The library as an application uses it. */
export const locks = (at: { readonly url: string }, options: ClientOptions = {}) =>
  locksOver(
    IoRedis.layer({
      url: at.url,
      commandTimeout: options.commandTimeout,
      // nothing here is about how long a busy machine takes to connect
      connectTimeout: options.connectTimeout ?? "1 minute",
      label: options.label,
      ioredis: { ...reconnectsAtOnce, ...options.ioredis }
    }),
    options
  )

/** A client of the library. */
export interface Client {
  /** Runs an effect as this client. */
  readonly run: <A, E>(self: Effect.Effect<A, E, RedisLock.RedisLock>) => Effect.Effect<A, E>
}

/** Builds a client, for as long as the scope is open. */
export const clientOf = <E>(locks: Layer.Layer<RedisLock.RedisLock, E>): Effect.Effect<Client, E, Scope.Scope> =>
  Effect.map(Layer.build(Layer.fresh(locks)), (context) => ({ run: (self) => Effect.provideContext(self, context) }))

/** A client of the server or proxy at that address. */
export const client = (at: { readonly url: string }, options?: ClientOptions) => clientOf(locks(at, options))

/** A client that is told of no losses and stores no label, which it would do after a second: the server runs for it only what it is asked to. */
export const untoldClient = ({ url }: { readonly url: string }, options?: RedisLock.RedisLockOptions) =>
  RedisLock.layer({ fallbackInterval: "200 millis", label: "", ...options }).pipe(
    onlyMessages(options ?? {}),
    Layer.updateService(RedisDriver.RedisDriver, (driver) => ({ ...driver, invalidations: undefined })),
    Layer.provide(IoRedis.layer({ url, connectTimeout: "1 minute", ioredis: reconnectsAtOnce })),
    clientOf
  )

/** Where something listens. */
interface Address {
  readonly host: string
  readonly port: number
}

/** A client over an application's own ioredis client; its subscriptions may go another way than its commands. */
export const clientOver = Effect.fnUntraced(function* (
  redis: Redis,
  options?: RedisLock.RedisLockOptions & { readonly subscriptions?: Address; readonly commandTimeout?: number }
) {
  if (options?.subscriptions !== undefined) {
    const { host, port } = options.subscriptions
    const duplicate = redis.duplicate.bind(redis)
    redis.duplicate = (override) => duplicate({ ...override, host, port })
  }
  return yield* clientOf(locksOver(IoRedis.fromClient(redis, { commandTimeout: options?.commandTimeout }), options))
})
