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
    /** Whether the connection for subscriptions may be replaced once more: once for each connection for commands. */
    let mayReplace = true
    const track = async () => {
      const redis = client()
      const asked = subscriber.clientId(CHANNEL)
      try {
        const id = await asked
        if (id === undefined || redis?.status !== "ready") return
        await redis.call("CLIENT", "TRACKING", "ON", "REDIRECT", id, "OPTIN", "NOLOOP")
        // refused here rather than before each script
        await redis.call("CLIENT", "CACHING", "YES")
        if (!isOver) onSignal(subscribed)
      } catch (error) {
        const { message, name } = error as Error
        const failure = failureOf(error)
        // a connection that broke is tracked again when there is a new one; not so one that was late for an application's commandTimeout
        if (isOver || (name !== "ReplyError" && failure.reason !== "TimedOut")) return
        if (!message.includes("does not exist")) return fail(failure)
        // the one for subscriptions is gone, or is at another server than the one for commands
        if (!mayReplace || subscriber.clientId(CHANNEL) !== asked) return
        mayReplace = false
        subscriber.replaceConnections(new Error(`the server of the commands does not know this connection: ${message}`))
      }
    }
    const subscription = subscriber.subscribe(
      CHANNEL,
      (signal) => {
        if (signal._tag === "Subscribed") void track()
        // FLUSHALL names no key
        else onSignal(signal.message === "" ? subscribed : signal)
      },
      (error) => fail(error)
    )
    const stop = listen(() => {
      mayReplace = true
      void track()
    })
    const cancel = () => {
      isOver = true
      stop()
      subscription.cancel()
    }
    /** Nobody cancels what has failed. */
    const fail = (error: RedisDriver.RedisDriverError) => {
      cancel()
      onFailure(error)
    }
    return { cancel }
  })(CHANNEL)
