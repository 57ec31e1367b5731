/**
 * What the fault tests share: a server of one's own, clients of the library as an application would build them, a bare
 * client that looks at Redis from outside, and sections that can be watched.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { RedisServer, TcpProxy } from "@effect-redis-lock/testing"
import { assert } from "@effect/vitest"
import { Cause, Deferred, Duration, Effect, Exit, Fiber, Layer, Option, Schedule, type Scope } from "effect"
import {
  type AcquireError,
  type Holding,
  Lock,
  LockLost,
  LockStoreError,
  type RedisDriver,
  RedisLock
} from "effect-redis-lock"
import { Redis } from "ioredis"

/** How long a test waits for what must happen in the end, on a machine however busy. */
const patience = Duration.minutes(4)

/** Options of a client, of its driver and of ioredis. */
export interface ClientOptions extends RedisLock.RedisLockOptions, Omit<IoRedis.IoRedisOptions, "url"> {}

/** Reconnects at once: the tests are about what happens then, not about when ioredis tries again. */
const impatient = { retryStrategy: () => 50 }

/** The library over a driver, with leases short enough to wait for. */
export const locksOver = <E>(driver: Layer.Layer<RedisDriver.RedisDriver, E>, options?: RedisLock.RedisLockOptions) =>
  RedisLock.layer({ watchdogLeaseTime: "1500 millis", fallbackInterval: "200 millis", ...options }).pipe(
    Layer.provide(driver)
  )

/** The library as an application uses it. */
export const locks = (at: { readonly url: string }, options: ClientOptions = {}) =>
  locksOver(
    IoRedis.layer({
      url: at.url,
      commandTimeout: options.commandTimeout,
      connectTimeout: options.connectTimeout,
      ioredis: { ...impatient, ...options.ioredis }
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

/** A bare ioredis client: looks at Redis from outside, and does to it what no application would. */
export const bare = (at: { readonly url: string }): Effect.Effect<Redis, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const redis = new Redis(at.url, { ...impatient, maxRetriesPerRequest: null })
      redis.on("error", () => {})
      return redis
    }),
    (redis) => Effect.sync(() => redis.disconnect())
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

/** What a test is given. */
export interface Site {
  readonly server: RedisServer.RedisServer
  /** Looks at the server directly, whatever lies between the tested clients and the server. */
  readonly redis: Redis
}

/**
 * A test on a server of its own. When everything that it has built is closed again, nothing may be left in Redis but the
 * last fencing tokens: no lock, no subscription, no connection.
 */
export const onServer =
  <E>(body: (site: Site) => Effect.Effect<unknown, E, Scope.Scope>, options?: RedisServer.Options) =>
  () =>
    Effect.gen(function* () {
      const server = yield* RedisServer.start(options)
      const redis = yield* bare(server)
      yield* Effect.scoped(body({ server, redis }))
      yield* leavesNothing(redis)
    })

/** {@link onServer} with a proxy before the server. */
export const behindProxy = <E>(
  body: (site: Site & { readonly proxy: TcpProxy.TcpProxy }) => Effect.Effect<unknown, E, Scope.Scope>,
  options?: RedisServer.Options
) =>
  onServer<E | TcpProxy.TcpProxyError>(
    (site) => Effect.flatMap(TcpProxy.make({ target: site.server }), (proxy) => body({ ...site, proxy })),
    options
  )

/** Asks again and again until the answer is as it must be; fails with the last answer where it never is. */
export const eventually = Effect.fnUntraced(function* <A>(
  what: string,
  ask: () => Promise<A> | A,
  holds: (answer: A) => boolean
) {
  const until = performance.now() + Duration.toMillis(patience)
  while (true) {
    const answer = yield* Effect.promise(async () => ask())
    if (holds(answer)) return answer
    if (performance.now() > until) assert.fail(`never came true: ${what}; last seen: ${JSON.stringify(answer)}`)
    yield* Effect.sleep(10)
  }
})

/** Waits for what must come. */
export const soon = <A, E, R>(what: string, self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.timeoutOrElse(self, {
    duration: patience,
    orElse: () => Effect.die(new Error(`did not happen within ${Duration.format(patience)}: ${what}`))
  })

const leavesNothing = Effect.fnUntraced(function* (redis: Redis) {
  yield* eventually(
    "no key of ours is left but the last tokens",
    () => redis.keys("*"),
    (keys) => keys.every((key) => key.startsWith("redisson_lock_token:"))
  )
  yield* eventually(
    "nobody is subscribed any more",
    () => redis.pubsub("CHANNELS"),
    (channels) => (channels as ReadonlyArray<unknown>).length === 0
  )
  yield* eventually(
    "nobody else is connected any more",
    async () => (await redis.client("LIST")) as string,
    (clients) => clients.trim().split("\n").length === 1
  )
})

/** Waits until the client has a connection. */
export const connected = ({ run }: Client) =>
  eventually(
    "the client is connected",
    () => Effect.runPromise(Effect.result(run(Lock.isLocked("any")))),
    (result) => result._tag === "Success"
  )

/** Waits until the client has none. */
export const disconnected = ({ run }: Client) =>
  eventually(
    "the client is disconnected",
    () => Effect.runPromise(Effect.result(run(Lock.isLocked("any")))),
    (result) =>
      result._tag === "Failure" && result.failure._tag === "LockStoreError" && result.failure.reason === "NotConnected"
  )

/** Waits until the lock's key is there, or is gone. */
export const lockKey = (redis: Redis, lock: string, is: "there" | "gone") =>
  eventually(
    `the key of lock "${lock}" is ${is}`,
    () => redis.exists(lock),
    (count) => count === (is === "there" ? 1 : 0)
  )

/** Waits until so many scripts have been run by their SHA since the server started, or were unknown to it. */
const scriptsRun = (redis: Redis, count: number) =>
  eventually(
    `${count} scripts have been run`,
    () => redis.info("commandstats"),
    (stats) => Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1]) >= count
  )

/** Waits until so many connections are subscribed to the lock's channel. */
export const subscribers = (redis: Redis, lock: string, count: number, prefix = "redisson_lock__channel") =>
  eventually(
    `${count} connections are subscribed to the channel of lock "${lock}"`,
    () => redis.pubsub("NUMSUB", `${prefix}:{${lock}}`) as Promise<ReadonlyArray<unknown>>,
    ([, subscribed]) => Number(subscribed) === count
  )

/** Waits until somebody sleeps who waits for what another holds; nobody else may have run a script on this server. */
export const waiterSleeps = Effect.fnUntraced(function* (redis: Redis, lock: string) {
  // each client's first, refused because the server's clock is not known yet; the holder's; the waiter's before and after it
  // has subscribed
  yield* scriptsRun(redis, 5)
  yield* subscribers(redis, lock, 1)
})

/** In Redis the lock belongs to this holding, once, and to nobody else. */
export const belongsTo = Effect.fnUntraced(function* (redis: Redis, lock: string, holding: Pick<Holding, "owner">) {
  const fields = yield* Effect.promise(() => redis.hgetall(lock))
  assert.deepStrictEqual({ ...fields }, { [holding.owner]: "1" })
})

/** The typed error with which something failed. */
export const failure = <A, E>(exit: Exit.Exit<A, E>): E => {
  if (Exit.isSuccess(exit)) return assert.fail(`should have failed, but succeeded with ${String(exit.value)}`)
  return Option.getOrElse(Cause.findErrorOption(exit.cause), () => assert.fail(Cause.pretty(exit.cause)))
}

/** The loss with which a section failed. */
export const loss = (exit: Exit.Exit<unknown, unknown>): LockLost => {
  const error = failure(exit)
  assert.instanceOf(error, LockLost)
  return error
}

/** The error of Redis with which something failed. */
export const storeError = (exit: Exit.Exit<unknown, unknown>): LockStoreError => {
  const error = failure(exit)
  assert.instanceOf(error, LockStoreError)
  return error
}

/** A section that lasts until it is interrupted or told to end. */
export interface Section {
  readonly holding: Holding
  /** Whether its body was interrupted. */
  readonly wasInterrupted: () => boolean
  /** Ends the body, which then succeeds with "done". */
  readonly end: Effect.Effect<void>
  /** Waits for the outcome. */
  readonly exit: Effect.Effect<Exit.Exit<string, AcquireError | LockLost>>
}

export interface SectionOptions extends Lock.AcquireOptions {
  /** The body does not notice a loss, like a long query that runs to its end. */
  readonly deaf?: boolean
  /** Tries again where Redis could not be asked but may be soon. */
  readonly persistent?: boolean
}

const persistently = <A, R>(self: Effect.Effect<A, AcquireError | LockLost, R>) =>
  Effect.retry(self, {
    while: (error) => error._tag === "LockStoreError" && error.isTransient,
    schedule: Schedule.spaced(50)
  })

/** Forks a section that waits for the lock; the inner effect completes when it is in. */
export const queueUp = Effect.fnUntraced(function* (who: Client, lock: string, options: SectionOptions = {}) {
  const held = yield* Deferred.make<Holding>()
  const told = yield* Deferred.make<void>()
  let interrupted = false
  const body = Effect.gen(function* () {
    yield* Deferred.succeed(held, yield* Effect.orDie(Lock.currentHolding(lock)))
    yield* Deferred.await(told)
    return "done"
  }).pipe(
    Effect.onInterrupt(() => Effect.sync(() => (interrupted = true))),
    options.deaf === true ? Effect.uninterruptible : (self) => self
  )
  const fiber = yield* body.pipe(
    Lock.withLock(lock, options),
    options.persistent === true ? persistently : (self) => self,
    who.run,
    Effect.forkScoped({ startImmediately: true })
  )
  // a deaf body would keep the scope from closing
  yield* Effect.addFinalizer(() => Deferred.succeed(told, undefined))
  const entered = Effect.map(
    Effect.raceFirst(Deferred.await(held), Effect.andThen(Fiber.join(fiber), Effect.never)),
    (holding): Section => ({
      holding,
      wasInterrupted: () => interrupted,
      end: Effect.asVoid(Deferred.succeed(told, undefined)),
      exit: soon(`the section under lock "${lock}" ends`, Fiber.await(fiber))
    })
  )
  return { entered: soon(`lock "${lock}" is acquired`, entered), fiber }
})

/** Forks a section and waits until it has the lock. */
export const enter = (who: Client, lock: string, options?: SectionOptions) =>
  Effect.flatMap(queueUp(who, lock, options), ({ entered }) => entered)
