import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { type Cluster, Redis, type RedisOptions } from "ioredis"
import type { CommandPath, StartupNode } from "../command/CommandPath.ts"
import { Connection } from "./Connection.ts"
import { ConnectionLog } from "./ConnectionLog.ts"
import { listen, scoped } from "./listening.ts"
import { failed, type Failure, failureOf, hiding, messageOf } from "../failure.ts"

/** Makes a client of our own. Its errors have a listener even after it is closed: ioredis would print them. */
export const open = <A extends Redis | Cluster>(make: () => A) =>
  Effect.acquireRelease(
    Effect.try({
      try: () => {
        const client = make()
        client.on("error", () => {})
        return client
      },
      catch: (error) => failureOf(error)
    }),
    (client) => Effect.sync(() => client.disconnect())
  )

/** Connects for the first time, or waits for a client that is about to; fails with the reason if it cannot. */
export const connect = (connection: Connection): Effect.Effect<void, Failure> =>
  Effect.callback((resume, signal) => {
    const { client } = connection
    const connected = client.status === "wait" ? client.connect() : ready(client, signal)
    connected.then(
      () => resume(connection.isUnusable ? Effect.fail(connection.failure!) : Effect.void),
      // connect() itself only knows that the connection was closed
      (error) => resume(Effect.fail(connection.failure ?? connection.failureOf(error)))
    )
  })

/** {@link connect} for a cluster. The startup node is asked for the reason if the cluster does not report one. */
export const connectCluster = (
  cluster: Cluster,
  path: CommandPath,
  redisOptions: RedisOptions,
  startupNode: StartupNode | undefined
): Effect.Effect<void, Failure, Scope.Scope> =>
  Effect.gen(function* () {
    const hide = hiding([redisOptions.password])
    let reason: unknown
    const note = (error: { readonly lastNodeError?: Error }) => {
      // a cluster says only that all its nodes have failed
      reason = error.lastNodeError ?? error
    }
    yield* scoped(() => listen(cluster, { error: note }))
    // its own promise may stay unsettled where a node turns out not to be ready
    const connected = (signal: AbortSignal) =>
      Promise.race([ready(cluster, signal), ...(cluster.status === "wait" ? [cluster.connect()] : [])])
    yield* Effect.tryPromise({ try: connected, catch: (error) => failureOf(reason ?? error, hide) }).pipe(
      Effect.catch((failure) => {
        const said = (reason as Error | undefined)?.name === "ReplyError"
        // a cluster knows only that no node answered
        const asked =
          said || startupNode === undefined ? Effect.void : tryOut(path, { ...redisOptions, ...startupNode })
        return Effect.andThen(asked, Effect.fail(failure))
      })
    )
  })

/** Asks all masters at once: one that is silent must not keep the others from serving. Rejects if none of them gives an answer. */
const firstAnswer = <A>(cluster: Cluster, ask: (master: Redis) => Promise<A>): Promise<A> =>
  Promise.any(cluster.nodes("master").map(ask)).catch(({ errors: [failure] }: AggregateError) => {
    throw failure ?? new Error("Stream isn't writeable: no node of the cluster is known")
  })

/**
 * Fails if a cluster that has just been connected refuses the password: ioredis 5.3 takes a node for ready before it has replied to
 * AUTH, and believes the slots of a node that has let it in as the default user.
 */
export const checkPassword = (cluster: Cluster, { password }: RedisOptions): Effect.Effect<void, Failure> => {
  if (password === undefined) return Effect.void
  const ping = async (node: Redis) =>
    node.ping().catch((error: unknown) => {
      const failure = failureOf(error, hiding([password]))
      if (failure.reason === "NotAuthenticated") return failure
      throw error
    })
  // any other failure of the nodes is not the cluster's
  return Effect.promise(() => firstAnswer(cluster, ping).catch(() => "")).pipe(
    Effect.flatMap((answer) => (typeof answer === "string" ? Effect.void : Effect.fail(answer)))
  )
}

/**
 * Whether a cluster that is connected uses sharded pub/sub. `auto` believes the first master that answers: it supports that unless it refuses
 * the command. One that is busy or loading says nothing about it, and a wrong answer would last as long as the process.
 */
export const usesShardedPubSub = (
  cluster: Cluster,
  wanted: "auto" | "on" | "off" = "auto"
): Effect.Effect<boolean, Failure> => {
  if (wanted !== "auto") return Effect.succeed(wanted === "on")
  const knowsIt = async (node: Redis) => {
    const answer = await node.call("PUBSUB", "SHARDNUMSUB").catch((error: Error) => {
      if (error.name === "ReplyError" && ["Failed", "NoPermission"].includes(failureOf(error).reason)) return undefined
      throw error
    })
    return answer !== undefined
  }
  return Effect.tryPromise({ try: () => firstAnswer(cluster, knowsIt), catch: (error) => failureOf(error) })
}

/** Connects to a server once; fails with the reason if that is impossible. */
const tryOut = (path: CommandPath, settings: RedisOptions): Effect.Effect<void, Failure> =>
  Effect.gen(function* () {
    const once = { lazyConnect: true, enableOfflineQueue: false, retryStrategy: () => null }
    const client = yield* open(() => new Redis({ ...settings, ...once, replyMapping: "legacy" }))
    const log = yield* ConnectionLog.make
    yield* connect(yield* scoped(() => new Connection(client, { path, log })))
  }).pipe(Effect.scoped)

/**
 * Fails with the problems of the sentinels, such as an untrusted certificate: ioredis says of a sentinel only that its connection is
 * closed. Succeeds if one of them can be reached.
 */
export const askSentinels = (path: CommandPath, sentinels: ReadonlyArray<RedisOptions>): Effect.Effect<void, Failure> =>
  Effect.gen(function* () {
    const ask = (settings: RedisOptions) => tryOut(path, settings)
    const [reached, failures] = yield* Effect.partition(sentinels, ask, { concurrency: "unbounded" })
    const [first] = failures
    if (first === undefined || reached.length > 0) return
    const problems = new Set(failures.map(messageOf))
    return yield* failed(first.reason, `no sentinel can be reached: ${[...problems].join("; ")}`)
  })

export const within = (millis: number) =>
  Effect.timeoutOrElse({
    duration: millis,
    orElse: () =>
      Effect.fail(failed("TimedOut", `connecting timed out after ${Duration.format(Duration.millis(millis))}`))
  })

const ready = (client: Redis | Cluster, signal: AbortSignal): Promise<void> =>
  new Promise((resolve, reject) => {
    const leave = (settle: () => void) => () => {
      listening.close()
      settle()
    }
    const close = leave(() => reject(new Error("Connection is closed.")))
    const listening = listen(client, { ready: leave(resolve), close })
    signal.addEventListener("abort", close)
  })
