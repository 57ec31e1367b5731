import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { RedisDriver } from "effect-redis-lock"
import type { Redis } from "ioredis"

type Subscribe = RedisDriver.RedisDriver["Service"]["subscribe"]
type Listener = Queue.Enqueue<RedisDriver.Signal, RedisDriver.RedisDriverError>

interface Channel {
  readonly listeners: Set<Listener>
  /** Whether Redis has confirmed the subscription on the present connection. */
  established: boolean
}

const subscribed: RedisDriver.Signal = { _tag: "Subscribed" }

/**
 * One connection that carries any number of subscriptions, opened when the first is wanted.
 */
export const makeSubscriber = (client: Redis): Effect.Effect<Subscribe, never, Scope.Scope> =>
  Effect.gen(function* () {
    const channels = new Map<string, Channel>()
    let connection: Redis | undefined

    const request = (redis: Redis, name: string): void => {
      const channel = channels.get(name)!
      redis.subscribe(name).then(
        () => {
          if (channels.get(name) !== channel) return
          channel.established = true
          for (const listener of channel.listeners) Queue.offerUnsafe(listener, subscribed)
        },
        (cause) => {
          // A broken connection is subscribed again when it is back; a refusal ends the streams.
          const error = RedisDriver.errorOf(cause)
          if (channels.get(name) !== channel || redis.status !== "ready") return
          channels.delete(name)
          for (const listener of channel.listeners) Queue.failCauseUnsafe(listener, Cause.fail(error))
        }
      )
    }

    const open = (): Redis => {
      const redis = client.duplicate({
        lazyConnect: false,
        autoResubscribe: false,
        enableOfflineQueue: false,
        maxRetriesPerRequest: 0,
        autoResendUnfulfilledCommands: false
      })
      redis.on("error", () => {})
      redis.on("close", () => {
        for (const channel of channels.values()) channel.established = false
      })
      redis.on("ready", () => {
        for (const name of channels.keys()) request(redis, name)
      })
      redis.on("message", (name: string, message: string) => {
        const listeners = channels.get(name)?.listeners
        if (listeners !== undefined) {
          for (const listener of listeners) Queue.offerUnsafe(listener, { _tag: "Message", message })
        }
      })
      return redis
    }

    yield* Effect.addFinalizer(() => Effect.sync(() => connection?.disconnect()))

    return (name) =>
      Stream.callback<RedisDriver.Signal, RedisDriver.RedisDriverError>((listener) =>
        Effect.acquireRelease(
          Effect.sync(() => {
            const redis = (connection ??= open())
            let channel = channels.get(name)
            if (channel === undefined) {
              channels.set(name, (channel = { listeners: new Set([listener]), established: false }))
              if (redis.status === "ready") request(redis, name)
            } else {
              channel.listeners.add(listener)
              if (channel.established) Queue.offerUnsafe(listener, subscribed)
            }
            return channel
          }),
          (channel) =>
            Effect.sync(() => {
              channel.listeners.delete(listener)
              if (channel.listeners.size > 0 || channels.get(name) !== channel) return
              channels.delete(name)
              if (connection?.status === "ready") connection.unsubscribe(name).catch(() => {})
            })
        )
      )
  })
