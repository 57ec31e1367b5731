import { RedisDriver } from "effect-redis-lock"
import type { Redis } from "ioredis"
import { failed, type Failure, failureOf } from "./failure.ts"
import type { Closable } from "./connection/listening.ts"
import { type Listener, subscribed, type Subscriber } from "./subscriber.ts"

/** Where the server tells a connection with RESP2 of changed keys. */
const CHANNEL = "__redis__:invalidate"

/** A server at which scripts read keys. */
interface TrackedServer {
  /** The connection for commands; undefined while there is none. */
  readonly client: () => Redis | undefined
  /** Whether the application may use that connection, too. */
  readonly isShared: boolean
  readonly subscriber: Subscriber
  /** Calls back whenever a connection for commands is ready. */
  readonly listen: (onReady: () => void) => Closable
}

/** A server reports what a connection has read to a single other one: that of the first driver, which passes it on to all others. */
interface Reports {
  readonly listeners: Set<Listener>
  /** Whether the server reports. */
  hasBegun: boolean
}

const reportsOf = new WeakMap<Redis, Reports>()

/** A request of one of our drivers that the server report to the connection with this number. */
interface Redirect {
  readonly id: number
  isAnswered: boolean
}

/**
 * Those over the current connection for commands, in the order in which they were sent: a server that has been restarted gives former numbers
 * to others. Requests that are late may still be carried out: ioredis sends what is unanswered again over the next connection, also what has
 * timed out.
 */
const redirects = new WeakMap<Redis, ReadonlyArray<Redirect>>()

const redirect = async (redis: Redis, id: number): Promise<void> => {
  const request: Redirect = { id, isAnswered: false }
  const untilNow = [...(redirects.get(redis) ?? []), request]
  redirects.set(redis, untilNow)
  const answered = () => {
    for (const earlier of untilNow) earlier.isAnswered = true
  }
  try {
    await call(redis, "TRACKING", "ON", "REDIRECT", id, "OPTIN", "NOLOOP")
    answered()
  } catch (error) {
    if (isReply(error)) answered()
    throw error
  }
}

/** There is a new connection for commands. */
const forgetAnswered = (redis: Redis): void => {
  redirects.set(
    redis,
    (redirects.get(redis) ?? []).filter(({ isAnswered }) => !isAnswered)
  )
}

const isReply = (error: unknown): boolean =>
  (error as Error).name === "ReplyError" || error === RedisDriver.inTransaction

const call = async (redis: Redis, ...args: ReadonlyArray<string | number>): Promise<unknown> => {
  const reply = await redis.call("CLIENT", ...args)
  if (reply === "QUEUED") throw RedisDriver.inTransaction
  return reply
}

/** Whether the application has its own reads reported over this connection: its cache would not learn of changes any more. */
const isTaken = async (redis: Redis, id: number): Promise<boolean> => {
  const target = await call(redis, "GETREDIR").catch((error: Error) => {
    // a server that has no such command
    if (/unknown subcommand/i.test(error.message)) return -1
    throw error
  })
  // ioredis may have sent a request of ours again over a new connection
  return target !== -1 && target !== id && !redirects.get(redis)?.some(({ id }) => id === Number(target))
}

const takenByApplication = failed("Failed", "the application uses CLIENT TRACKING on this connection itself")

const takenOver = failed("ConnectionLost", "another driver of the same connection receives the reports from now on")

/**
 * What a server reports about the keys that its tracked scripts have read. The connection for commands reads them, that for
 * subscriptions receives the reports, so this begins anew whenever either has reconnected.
 */
export const invalidationsOf = (server: TrackedServer): ReturnType<RedisDriver.RedisDriver["Service"]["subscribe"]> =>
  RedisDriver.subscribeOf((_, onSignal, onFailure) => {
    const listener: Listener = { onSignal, onFailure }
    const redis = server.client()
    const reports = redis && reportsOf.get(redis)
    if (reports === undefined) return begin(server, listener)
    reports.listeners.add(listener)
    if (reports.hasBegun) onSignal(subscribed)
    return { cancel: () => void reports.listeners.delete(listener) }
  })(CHANNEL)

const begin = ({ client, isShared, listen, subscriber }: TrackedServer, first: Listener): RedisDriver.Cancellable => {
  const reports: Reports = { listeners: new Set([first]), hasBegun: false }
  const onSignal = (signal: RedisDriver.Signal) => {
    for (const listener of [...reports.listeners]) listener.onSignal(signal)
  }
  let isOver = false
  /** The connection whose reports these are: a node's may be another one later. */
  let registered: Redis | undefined
  const register = (redis: Redis | undefined) => {
    if (registered !== undefined && reportsOf.get(registered) === reports) reportsOf.delete(registered)
    registered = redis
    if (redis !== undefined) reportsOf.set(redis, reports)
  }
  /** Whether the connection for subscriptions may be replaced once more: once for each connection for commands. */
  let mayReplace = true
  const track = async () => {
    const redis = client()
    const asked = subscriber.clientId(CHANNEL)
    reports.hasBegun = false
    let id: number | undefined
    try {
      id = await asked
      if (isOver || id === undefined || redis?.status !== "ready") return
      const others = reportsOf.get(redis)
      // the next try joins them
      if (others !== undefined && others !== reports) return fail(takenOver)
      register(redis)
      const isFree = !isShared || !(await isTaken(redis, id))
      if (isOver) return
      if (!isFree) return fail(takenByApplication)
      await redirect(redis, id)
      // refused here rather than before each script
      await call(redis, "CACHING", "YES")
      if (isOver) return
      reports.hasBegun = true
      onSignal(subscribed)
    } catch (error) {
      const { message } = error as Error
      const failure = failureOf(error)
      // a connection that broke is tracked again when there is a new one; not so one that was late for an application's commandTimeout
      if (isOver || (!isReply(error) && failure.reason !== "TimedOut")) return
      // it is asked for its number once, before it is subscribed to anything: another one will have the answer
      if (failure.reason === "Busy" && id === undefined) {
        if (subscriber.clientId(CHANNEL) === asked) subscriber.replaceConnections(error as Error)
        return
      }
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
  const listening = listen(() => {
    mayReplace = true
    const redis = client()
    if (redis !== undefined) forgetAnswered(redis)
    void track()
  })
  /** Nobody cancels what has failed. */
  const fail = (failure: Failure) => {
    isOver = true
    listening.close()
    subscription.cancel()
    register(undefined)
    for (const listener of reports.listeners) listener.onFailure(failure)
    reports.listeners.clear()
  }
  return {
    cancel: () => {
      reports.listeners.delete(first)
      // the next of the others begins anew, over its own driver
      if (!isOver) fail(takenOver)
    }
  }
}
