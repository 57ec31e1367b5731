import { RedisDriver } from "effect-redis-lock"
import type { Redis } from "ioredis"
import { failureOf } from "./command/failure.ts"
import type { Subscriber } from "./subscriber.ts"

/** Where the server tells a connection with RESP2 of changed keys. */
const CHANNEL = "__redis__:invalidate"

const subscribed: RedisDriver.Signal = { _tag: "Subscribed" }

/** A server at which scripts read keys. */
interface TrackedServer {
  /** The connection for commands; undefined while there is none. */
  readonly client: () => Redis | undefined
  readonly subscriber: Subscriber
  /** Calls back whenever a connection for commands is ready. */
  readonly listen: (onReady: () => void) => () => void
}

/**
 * What a server reports about the keys that its tracked scripts have read. The connection for commands reads them, that for
 * subscriptions receives the reports, so this begins anew whenever either has reconnected.
 */
export const invalidationsOf = ({
  client,
  listen,
  subscriber
}: TrackedServer): ReturnType<RedisDriver.RedisDriver["Service"]["subscribe"]> =>
  RedisDriver.subscribeOf((_, onSignal, onFailure) => {
    let isOver = false
    const track = async () => {
      const redis = client()
      try {
        const id = await subscriber.clientId(CHANNEL)
        if (id === undefined || redis?.status !== "ready") return
        await redis.call("CLIENT", "TRACKING", "ON", "REDIRECT", id, "OPTIN", "NOLOOP")
        // refused here rather than before each script
        await redis.call("CLIENT", "CACHING", "YES")
        if (!isOver) onSignal(subscribed)
      } catch (error) {
        const { message, name } = error as Error
        // a connection that broke, or that is redirected to one that is gone, is tracked again when there is a new one
        if (!isOver && name === "ReplyError" && !message.includes("does not exist")) onFailure(failureOf(error))
      }
    }
    const subscription = subscriber.subscribe(
      CHANNEL,
      (signal) => {
        if (signal._tag === "Subscribed") void track()
        // FLUSHALL names no key
        else onSignal(signal.message === "" ? subscribed : signal)
      },
      onFailure
    )
    const stop = listen(() => void track())
    return {
      cancel: () => {
        isOver = true
        stop()
        subscription.cancel()
      }
    }
  })(CHANNEL)
