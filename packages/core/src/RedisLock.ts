/**
 * The lock service: one client of a store, with its id, its watchdog and its subscriptions. Locks take it from the context.
 *
 * @since 0.1.0
 */
import * as Config from "effect/Config"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { AcknowledgeOptions, QuorumOptions } from "./AcquireOptions.ts"
import { makeLockClient, RedisLock } from "./internal/client/LockClient.ts"
import {
  parseLease,
  parseMaxHold,
  parsePeriod,
  parseRetention,
  parseAcknowledge
} from "./internal/options/acquireOptions.ts"
import {
  checkLabel,
  checkQuorum,
  type ClientOptions,
  defaultLabel,
  handOverMillis,
  LongestIntervals,
  SubscriptionIdleMillis
} from "./internal/options/ClientOptions.ts"
import { joinQuorum } from "./internal/quorum/quorumClient.ts"
import { checkText } from "./internal/store/keys.ts"
import { InvalidLockOptions } from "./LockError.ts"
import * as Store from "./LockStore.ts"
import type { RedisDriver } from "./RedisDriver.ts"

export {
  /**
   * One client of a lock store. Its `clientId` is a random UUID, new for every client: the first part of every owner, as in
   * Redisson.
   *
   * **Gotchas**
   *
   * Only the layers of this module make one: it carries the client, with its watchdog and its subscriptions. For tests without Redis, use
   * {@link layerMemory}.
   *
   * @category services
   * @since 0.1.0
   */
  RedisLock
}

/**
 * All settings of a client. Durations are Effect durations: a number is milliseconds.
 *
 * {@link layerConfig} reads the same settings from the environment: `REDIS_LOCK_WATCHDOG_LEASE_TIME` and so on.
 *
 * @category options
 * @since 0.1.0
 */
export interface RedisLockOptions {
  /**
   * The lease of locks acquired without `leaseTime`, renewed every third of it while they are held: how long a lock may
   * outlive its process. Redisson's `lockWatchdogTimeout`; the two need not be equal. It should be at least four times the
   * driver's `commandTimeout`: otherwise one silent connection costs the lock, because the renewal is not repeated over a
   * new connection in time. Default: 30 seconds.
   */
  readonly watchdogLeaseTime?: Duration.Input | undefined
  /**
   * How long the watchdog renews locks and leased permits at most: after that they are lost, with the reason `HeldTooLong`, and
   * their sections are interrupted. An acquisition overrides it with its own `maxHold`; elections have none, and each tick of a schedule has
   * its own. Default: none. Set it well above your longest section, such as an hour: otherwise a section that hangs keeps its
   * lock for as long as its process runs.
   */
  readonly maxHold?: Duration.Input | undefined
  /**
   * The longest time that a waiter sleeps before it retries, should every wake-up message be lost. Jittered by a fifth. While
   * Redis cannot be reached, a waiter retries sooner: after 100 milliseconds at first, then less and less often, at least every 5
   * seconds. Default: 1 second, or an eighth of `watchdogLeaseTime` if that is shorter. That is half of the short lease of a lock
   * that is handed over, so that a waiter whose message was lost still asks before that lease ends.
   *
   * A longer interval is capped: a waiter for a `writeLock` asks about every 3 seconds, which keeps later readers from entering first, and
   * a waiter for any other lock or for permits about every 30 seconds, which keeps the place of its process in Redis.
   */
  readonly fallbackInterval?: Duration.Input | undefined
  /**
   * How long a release is retried before it is reported as failed; the retries then go on in the background until the lease
   * is over. Also how long a closing client tries to release everything that it holds. While Redis is away, the releases of a
   * program that ends share this time: of nested sections, of everything in a scope, and of the closing client. Default: 5 seconds.
   */
  readonly releaseTimeout?: Duration.Input | undefined
  /**
   * How long Redis remembers the last fencing token of a name after the lease of its last grant; zero or longer. It costs a
   * key of about 150 bytes for each name locked within this time. See docs/memory.md. Default: 24 hours.
   *
   * Tokens are server time in microseconds, so they rise by themselves as long as the server's clock does. The remembered
   * token keeps them rising when the clock is set back, after a failover to a server whose clock is behind, and on a quorum
   * whose servers' clocks differ, provided that the clocks are apart by less than this time. With NTP on all servers a
   * minute is plenty. Locks whose tokens nobody checks can do without: `tokens: "none"`.
   */
  readonly tokenRetention?: Duration.Input | undefined
  /**
   * A prefix of every lock's name, like a NameMapper in Redisson: for sharing one Redis, and for ACL rules. At most 1 KiB
   * of well-formed Unicode without NUL. Default: none.
   */
  readonly keyPrefix?: string | undefined
  /**
   * A name for people to recognise this client by: the spans of its holdings carry it as `lock.client.label`, and other clients
   * tell it in `LockTimeout` and `Lock.inspect`. For that it is stored in Redis, under `effect_redis_lock_client:{<client>}`
   * for an hour at a time, once the client has held or waited for a second, until it is closed; by a quorum's client, with the label of the first member, on each server. At most
   * 256 characters; empty for none. Default: host, pid and program, as in `web-3/4711/server.js`.
   *
   * The connections of `IoRedis.layer` have a `label` of their own, with the same default; `IoRedis.layerRedisLock` gives both this one.
   */
  readonly label?: string | undefined
  /**
   * What every grant needs besides the master's reply in order to count: acknowledgements by replicas. An acquisition
   * overrides it with its own `acknowledge`. On a quorum the options of the members' layers apply, each on its own server.
   * Default: nothing.
   */
  readonly acknowledge?: AcknowledgeOptions | undefined
}

/** What was checked, or a failure with the problem. */
const valid = <A>(checked: A | InvalidLockOptions): Effect.Effect<A, InvalidLockOptions> =>
  checked instanceof InvalidLockOptions ? Effect.fail(checked) : Effect.succeed(checked)

const checkOptions = Effect.fnUntraced(function* (
  given: RedisLockOptions | null,
  canAcknowledge: boolean
): Effect.fn.Return<ClientOptions, InvalidLockOptions> {
  const options = given ?? {}
  const keyPrefix = options.keyPrefix ?? ""
  const label = options.label ?? defaultLabel()
  const watchdogLeaseMillis = yield* valid(parseLease("watchdogLeaseTime", options.watchdogLeaseTime ?? 30_000))
  const fallbackIntervalMillis = yield* valid(
    parsePeriod("fallbackInterval", options.fallbackInterval ?? handOverMillis(watchdogLeaseMillis) / 2)
  )
  yield* valid(checkText("keyPrefix", keyPrefix))
  yield* valid(checkLabel(label))
  return {
    watchdogLeaseMillis,
    renewIntervalMillis: watchdogLeaseMillis / 3,
    maxHoldMillis: yield* valid(parseMaxHold(options.maxHold ?? Number.POSITIVE_INFINITY)),
    fallbackIntervalMillis,
    // A dead client is skipped soon, although a few reports may be lost or late.
    placeIntervalMillis: Math.min(500, fallbackIntervalMillis / 2),
    releaseTimeoutMillis: yield* valid(parsePeriod("releaseTimeout", options.releaseTimeout ?? 5000)),
    subscriptionIdleMillis: yield* SubscriptionIdleMillis,
    longestIntervals: yield* LongestIntervals,
    tokenRetentionMillis: yield* valid(parseRetention("tokenRetention", options.tokenRetention ?? "24 hours")),
    keyPrefix,
    label,
    acknowledge:
      options.acknowledge === undefined
        ? undefined
        : yield* valid(parseAcknowledge(options.acknowledge, canAcknowledge))
  }
})

/**
 * A client of the provided {@link Store.LockStore}: `LockStore.layerRedis`, `LockStore.layerMemory`, or one of your own.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerFromStore = (
  options: RedisLockOptions = {}
): Layer.Layer<RedisLock, InvalidLockOptions, Store.LockStore> =>
  Layer.effect(
    RedisLock,
    Effect.gen(function* () {
      const store = yield* Store.LockStore
      return yield* makeLockClient(store, yield* checkOptions(options, store.acknowledges !== undefined))
    })
  )

/**
 * A client of Redis, through the provided driver: `IoRedis.layer` of `@effect-redis-lock/ioredis`, or
 * `RedisDriver.layerRedis`. Build it once per process and server: a client knows only its own waiters and holdings.
 *
 * For several servers, call it once for each: Effect builds a layer that is kept in a constant only once per program, no
 * matter which layers are provided to it.
 *
 * When its scope closes, a client releases everything that it still holds before its connection closes, within the
 * `releaseTimeout`: sections are interrupted and fail with `LockLost` (`ClientClosed`) once they have ended, waiters fail
 * with `LockStoreError` (`Closed`), and scopes of holdings that close later have nothing left to do. The client logs locks
 * that it could not release; they become free when their leases end.
 *
 * @example
 * ```ts
 * import { IoRedis } from "@effect-redis-lock/ioredis"
 * import { Effect, Layer } from "effect"
 * import { Lock, RedisLock } from "effect-redis-lock"
 *
 * const live = RedisLock.layer({ watchdogLeaseTime: "20 seconds" }).pipe(
 *   Layer.provide(IoRedis.layer({ url: "redis://localhost:6379" }))
 * )
 *
 * const program = Effect.log("only one of us").pipe(Lock.withLock("report"), Effect.provide(live))
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options?: RedisLockOptions): Layer.Layer<RedisLock, InvalidLockOptions, RedisDriver> =>
  Layer.provide(layerFromStore(options), Store.layerRedis)

/**
 * The settings as a `Config` of environment variables, all of them optional: `REDIS_LOCK_WATCHDOG_LEASE_TIME`,
 * `REDIS_LOCK_MAX_HOLD`, `REDIS_LOCK_FALLBACK_INTERVAL`, `REDIS_LOCK_RELEASE_TIMEOUT`, `REDIS_LOCK_TOKEN_RETENTION` (durations such as `30 seconds`),
 * `REDIS_LOCK_KEY_PREFIX` and `REDIS_LOCK_LABEL`.
 *
 * @category options
 * @since 0.1.0
 */
export const settings: Config.Config<RedisLockOptions> = Config.all({
  watchdogLeaseTime: Config.withDefault(Config.Duration("REDIS_LOCK_WATCHDOG_LEASE_TIME"), undefined),
  maxHold: Config.withDefault(Config.Duration("REDIS_LOCK_MAX_HOLD"), undefined),
  fallbackInterval: Config.withDefault(Config.Duration("REDIS_LOCK_FALLBACK_INTERVAL"), undefined),
  releaseTimeout: Config.withDefault(Config.Duration("REDIS_LOCK_RELEASE_TIMEOUT"), undefined),
  tokenRetention: Config.withDefault(Config.Duration("REDIS_LOCK_TOKEN_RETENTION"), undefined),
  keyPrefix: Config.withDefault(Config.String("REDIS_LOCK_KEY_PREFIX"), undefined),
  label: Config.withDefault(Config.String("REDIS_LOCK_LABEL"), undefined)
})

/**
 * {@link layer} with its options from a `Config`. Default: {@link settings}.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerConfig = (
  config: Config.Wrap<RedisLockOptions> = settings
): Layer.Layer<RedisLock, Config.ConfigError | InvalidLockOptions, RedisDriver> =>
  Layer.unwrap(Effect.map(Config.unwrap(config), layer))

/**
 * A client of a memory store, on Effect's `Clock`: for tests (under `TestClock` nothing waits for real time), demonstrations, and
 * programs with a single process. For other settings provide {@link Store.layerMemory} to {@link layerFromStore}.
 *
 * **When not to use**
 *
 * Where more than one process uses the locks: each would have a store of its own, and exclude no other.
 *
 * @example
 * ```ts
 * import { Effect } from "effect"
 * import { Lock, RedisLock } from "effect-redis-lock"
 *
 * const program = Effect.log("only one of us").pipe(Lock.withLock("report"), Effect.provide(RedisLock.layerMemory))
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layerMemory: Layer.Layer<RedisLock> = layerFromStore().pipe(
  Layer.provide(Store.layerMemory),
  Layer.orDie // the default options are valid
)

/**
 * A client whose locks are held on a majority of independent servers, each of which is given by a layer: every `Lock`
 * becomes a `RedLock`, and no caller changes. `RedLock.make` says what that means and when it does not help.
 *
 * A minority of the servers may be unreachable when the layer is built; they join as soon as they can be reached. All
 * members must have the same `keyPrefix`; other settings are those of the first.
 *
 * Locks that a quorum cannot keep (fair ones, semaphores, latches) fail with `InvalidLockOptions` before any command. If
 * too many servers fail, acquiring fails with a `LockStoreError` whose `cause` is a `QuorumNotReached`; waiters fail at the
 * end of `waitTime`.
 *
 * **When not to use**
 *
 * With servers that replicate each other, as in a cluster or behind Sentinel, or in place of fencing: see `RedLock.make`.
 *
 * @example
 * ```ts
 * import { IoRedis } from "@effect-redis-lock/ioredis"
 * import { Effect, Layer } from "effect"
 * import { Lock, RedisLock } from "effect-redis-lock"
 *
 * const at = (url: string) => Layer.provide(RedisLock.layer(), IoRedis.layer({ url }))
 *
 * const live = RedisLock.layerQuorum([at("redis://a"), at("redis://b"), at("redis://c")])
 *
 * const program = Effect.log("only one of us").pipe(Lock.withLock("report"), Effect.provide(live))
 * ```
 *
 * @category layers
 * @since 0.2.0
 */
export const layerQuorum = <E, R>(
  members: ReadonlyArray<Layer.Layer<RedisLock, E, R>>,
  options: QuorumOptions = {}
): Layer.Layer<RedisLock, E | InvalidLockOptions, R> =>
  Layer.effect(
    RedisLock,
    Effect.flatMap(valid(checkQuorum(options)), (times) => joinQuorum(members, times))
  )
