/**
 * One client of a store: its id, its holdings, the waiters of this process, and the fibers that serve both. It implements
 * the `RedisLock` service.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type { Fiber } from "effect/Fiber"
import * as FiberSet from "effect/FiberSet"
import * as Predicate from "effect/Predicate"
import * as Scope from "effect/Scope"
import { type InvalidLockName, InvalidLockOptions } from "../../LockError.ts"
import type { AcquireRequest } from "../acquire/ask.ts"
import { HeldLeases } from "../hold/HeldLeases.ts"
import type { Lease, LeaseEntry } from "../hold/Lease.ts"
import { releaseUntilConfirmed } from "../hold/release.ts"
import { ReleaseTime } from "../hold/ReleaseTime.ts"
import { Tracking } from "../hold/Tracking.ts"
import { recordsOf, Watchdog } from "../hold/Watchdog.ts"
import { LabelsOfOthers } from "../kinds/inspect.ts"
import { leastTime, type LockProtocol } from "../kinds/kinds.ts"
import type { ClientOptions } from "../options/ClientOptions.ts"
import { report, type Report } from "../report/defects.ts"
import { printsAs, shown } from "../report/shown.ts"
import { Telemetry } from "../report/telemetry.ts"
import { runningOn } from "../store/commands.ts"
import { checkCollision, checkSlot, LockKeys } from "../store/keys.ts"
import { type StoreCommand, withTokenAtLeast } from "../store/operations/StoreOperation.ts"
import { runStream } from "../store/startable.ts"
import type { Store } from "../store/Store.ts"
import { AlarmClock, monotonicMillis } from "../time/clock.ts"
import { Lines } from "../wait/Lines.ts"
import { Subscriptions } from "../wait/Subscriptions.ts"
import { Presence } from "./Presence.ts"
import { RecentReleases } from "./RecentReleases.ts"

/** Two for each owner. The random source is asked for many at once: for each alone it would cost as much as the rest of a request. */
const random = new Uint32Array(1024)
let randomLeft = 0

/** A token that is a minute ahead of the bound comes from the server's clock, and is not just the last token plus one. */
const clearLeadMicros = 60_000_000

const TypeId = "~effect-redis-lock/RedisLock"

/** An opaque view of the client: only `LockClient` has this type. */
abstract class OpaqueClient {
  /** Not public, so that no other class has the type. */
  protected readonly isOne = true
}

export interface Service {
  readonly [TypeId]: OpaqueClient
  readonly clientId: string
}

/** The service that locks take from the context. */
export class RedisLock extends Context.Service<RedisLock, Service>()("effect-redis-lock/RedisLock") {}

export class LockClient extends OpaqueClient implements Service {
  /** The service carries the client itself. */
  readonly [TypeId]: LockClient = this
  /** A random UUID; owners are `<clientId>:<number>`, as in Redisson. */
  readonly clientId: string = crypto.randomUUID()
  readonly #ownerPrefix = `${this.clientId}:`
  /** What its store tells; commands are run by {@link run}. */
  readonly store: Omit<Store, "run">
  /** Runs a command. All pass through here, but for what a reconnect repeats. */
  readonly run: Store["run"]
  readonly options: ClientOptions
  readonly subscriptions: Subscriptions = new Subscriptions(this)
  readonly telemetry: Telemetry
  readonly lines: Lines = new Lines(this)
  /** Semaphores for which a wrong number of permits has been logged. */
  readonly comparedTotals = new Set<string>()
  readonly alarms: AlarmClock
  readonly leases = new HeldLeases()
  readonly watchdog: Watchdog
  readonly tracking: Tracking
  /** Monotonic time in milliseconds. */
  readonly now: () => number
  /** Runs an effect in the background, until the client is closed. */
  readonly fork: <A, E>(effect: Effect.Effect<A, E>) => Fiber<A, E>
  /** That in which it was made. Its scope is closed when the client is. */
  readonly context: Context.Context<Scope.Scope>
  /** Whether its store is a majority of several stores. */
  readonly isQuorum: boolean
  /** The clients of the RedLocks that have this client as a member, by what distinguishes them. */
  readonly quorumClients = new Map<string, LockClient>()
  /** Quorum clients that have this client as a member: closing it closes them. */
  readonly joinedBy = new Set<LockClient>()
  /** The number of unanswered acquisitions and releases, and of rollbacks: closing waits for them. */
  underWay = 0
  /** How many locks it keeps for their `minHold`, and hands over then. */
  keptLocks = 0
  /** The number of rollbacks that have kept their callers waiting for too long, and are not over yet. */
  overdueRollbacks = 0
  /** How long a caller has last waited for rollbacks, with what counted of earlier ones; and when that ended, on the monotonic clock. */
  awaited = { millis: 0, at: Number.NEGATIVE_INFINITY }
  /** A client and its RedLocks share it. */
  releaseTime = new ReleaseTime()
  /** Everything that a closing client still has to release. */
  readonly toGiveBack = new Set<Lease>()
  /** The highest token granted to this client, for any name: tokens are times. */
  #highestToken = 0
  /** After a reconnect, the lower bound for new tokens: another server, whose clock is behind, may answer now. */
  #leastToken: number | undefined = undefined
  readonly #report: Report
  /** Undefined for a store that does not notice reconnects. */
  readonly releases: RecentReleases | undefined = undefined
  readonly labels = new LabelsOfOthers(this)
  readonly presence = new Presence(this)
  /** Closes the scope in which the client of a RedLock was made. Run it after `close`. Nothing for other clients. */
  end: Effect.Effect<void> = Effect.void
  /** Whether the client refuses acquisitions because it closes. */
  isClosing = false
  #closed: Deferred.Deferred<void> | undefined = undefined

  constructor(
    store: Store,
    options: ClientOptions,
    isQuorum: boolean,
    fork: LockClient["fork"],
    context: Context.Context<Scope.Scope>
  ) {
    super()
    this.store = store
    this.run = runningOn(store, this)
    this.options = options
    this.isQuorum = isQuorum
    this.fork = fork
    this.context = context
    this.telemetry = new Telemetry(context, isQuorum)
    this.now = monotonicMillis(Context.get(context, Clock.Clock))
    this.#report = (defect) => report(context, defect)
    this.alarms = new AlarmClock(this.now, this.#report)
    this.watchdog = new Watchdog(this)
    this.tracking = new Tracking(this)
    if (store.reconnects !== undefined) this.releases = new RecentReleases(this, (command) => store.run(command))
  }

  /** Runs a task of the application, such as the resumption of one of its fibers, right after the running code, before any other event. */
  inMicrotask(task: () => void): void {
    queueMicrotask(() => {
      try {
        task()
      } catch (defect) {
        this.#report(defect)
      }
    })
  }

  /** {@link fork} for work that closing waits for. */
  background<A, E>(effect: Effect.Effect<A, E>): Fiber<A, E> {
    this.underWay++
    return this.fork(
      Effect.ensuring(
        effect,
        Effect.sync(() => void this.underWay--)
      )
    )
  }

  /** Marks every holding as lost, and for release. */
  loseAll(): void {
    for (const lease of this.leases.all) this.#loseAtEnd(lease)
  }

  #loseAtEnd(lease: Lease): void {
    this.toGiveBack.add(lease)
    lease.lose("ClientClosed")
  }

  /** Refuses acquisitions from now on: each waiter sends one more request, and fails. */
  sendHome(): void {
    this.isClosing = true
    this.lines.sendHome()
  }

  /** Releases all holdings, takes its label away meanwhile, and closes; see {@link giveBackAll}. */
  get close(): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (this.#closed !== undefined) return Deferred.await(this.#closed)
      const closed = (this.#closed = Deferred.makeUnsafe<void>())
      // before it closes the quorums of which it is a member: no other one is to be made in its scope
      this.sendHome()
      const leave = Effect.suspend(() => {
        this.background(this.presence.end)
        return giveBackAll(this)
      })
      const quorums = [...this.joinedBy].map(({ close, end }) => Effect.andThen(close, end))
      return Effect.ensuring(
        // side by side: a quorum whose other members are silent needs the whole time for itself
        Effect.all([...quorums, leave], { concurrency: "unbounded", discard: true }),
        Effect.sync(() => Deferred.doneUnsafe(closed, Effect.void))
      )
    })
  }

  /**
   * An owner is used once: `<client>:<number>`, where Redisson has the number of a thread. It is random, 47 bits, so that nobody who cannot
   * read the lock's keys can guess it: by it a waiter tells the message that hands the lock over to it from one that anybody may have published.
   *
   * Its 15 digits come in two parts: a long number takes as long to be formatted as everything else that makes a request. With one more
   * digit, a place of a writer would be too long for the compact form in which Redis keeps few places.
   */
  nextOwner(): string {
    if (randomLeft === 0) {
      crypto.getRandomValues(random)
      randomLeft = random.length
    }
    const first = 0x1000000 + (random[--randomLeft]! >>> 8)
    const second = 1_000_000 + (random[--randomLeft]! >>> 9)
    return `${this.#ownerPrefix}${first}${second}`
  }

  /** What Redis has granted is held from now on: the lease is watched, and what waits for it is told. Returns its outermost hold. */
  remember<H extends LeaseEntry>(
    { isRenewed, leaseMillis, maxHoldMillis = this.options.maxHoldMillis, minHoldMillis }: AcquireRequest,
    outermost: H,
    startedAt: number
  ): H {
    const { lease } = outermost
    const { acquiredAt, keys, kind, token } = lease
    if (kind.mode !== "read") lease.streak = this.lines.get(keys.lock, "exclusive")?.streak
    lease.keepFor(minHoldMillis)
    // a fixed lease bounds its re-entries instead, if it is longer
    if (maxHoldMillis < Number.POSITIVE_INFINITY)
      lease.heldUntil = acquiredAt + (isRenewed ? maxHoldMillis : Math.max(maxHoldMillis, leaseMillis))
    this.presence.begin()
    this.leases.add(lease)
    this.watchdog.watch(lease)
    this.telemetry.of(kind.name).waitDuration.record(acquiredAt - startedAt)
    if (token > this.#highestToken) {
      this.#highestToken = token
      // only the server's clock has such a lead
      if (this.#leastToken !== undefined && token > this.#leastToken + clearLeadMicros) this.#leastToken = undefined
    }
    if (this.isClosing) this.#loseAtEnd(lease)
    else this.lines.wakeOwners(outermost)
    return outermost
  }

  /** It is held no longer: its release begins, or it is lost. Returns whether it was remembered: one that nobody has held does not count. */
  forget(lease: Lease, now: number): boolean {
    this.watchdog.unwatch(lease)
    const wasHeld = this.leases.remove(lease)
    if (wasHeld) this.telemetry.of(lease.kind.name).holdDuration.record(now - lease.acquiredAt)
    return wasHeld
  }

  /** The connection is back, perhaps to a server that does not know what the last one had granted. */
  reconnected(): void {
    if (this.#highestToken > 0) this.#leastToken = this.#highestToken + 1
    this.releases?.repeat(recordsOf(this.watchdog.leases))
    this.watchdog.verifyAll()
  }

  /** Whether what a release gives back was given back after a reconnect, or may have been. A quorum asks its members' clients. */
  hasGivenBack(release: StoreCommand<unknown>): boolean {
    return this.releases?.hasGivenBack(release) === true
  }

  /** Whether a token that a release has minted is one of that kind, and above all tokens granted before the last reconnect. */
  accepts({ countsTokens, hasTokens }: LockProtocol, token: number): boolean {
    if (!hasTokens) return true
    if (countsTokens) return token > 0 && token < leastTime
    return token > 0 && (this.#leastToken === undefined || token >= this.#leastToken)
  }

  /** The command with a token bound above all tokens granted before the last reconnect, if its kind takes one. */
  bounded<A>(command: StoreCommand<A>): StoreCommand<A> {
    const least = this.#leastToken
    return least === undefined ? command : withTokenAtLeast(command, least)
  }
}

export const makeLockClient = Effect.fnUntraced(function* (store: Store, options: ClientOptions, isQuorum = false) {
  const fork = yield* FiberSet.makeRuntime<never>()
  const client = new LockClient(store, options, isQuorum, fork, yield* Effect.context<Scope.Scope>())
  yield* Effect.forkScoped(client.alarms.run)
  if (store.reconnects !== undefined) {
    yield* Effect.forkScoped(runStream(store.reconnects, () => client.reconnected()))
  }
  // registered last, so run first: the fibers above and the store are still there
  yield* Effect.addFinalizer(() => client.close)
  return client
})

/** The interval between checks whether everything has ended; real time, since an ending process has no other. */
const tickMillis = 2

const tick = Effect.callback<void>((resume) => void setTimeout(() => resume(Effect.void), tickMillis))

/**
 * The fewest checks, so that sections have time to end, and a server that does answer to confirm their releases: a release may just have
 * given up at another server, or for another lock. Counted, as the event loop of a busy process may be late.
 */
const leastChecks = 10

/** The most names that are logged. */
const longestList = 20

/**
 * Makes the waiters fail, and loses all holdings, in whatever order scopes close, which interrupts their sections; releases each one as soon
 * as its section has ended: concurrently, within the release timeout in real time, less what releases that gave up before have used of it.
 * Holdings that could not be released by then are logged, and become free when their leases end.
 */
const giveBackAll = (client: LockClient): Effect.Effect<void> =>
  Effect.gen(function* () {
    const until = performance.now() + client.releaseTime.left(client)
    const left = client.toGiveBack
    const begun = new Set<Lease>()
    // twice in a row: an acquisition that was just answered may be about to be rolled back
    for (let checks = 0, idle = 0; idle < 2 && (checks < leastChecks || performance.now() < until); checks++) {
      client.sendHome()
      client.loseAll()
      for (const held of left) {
        if (begun.has(held) || !held.isUnused) continue
        begun.add(held)
        client.background(
          Effect.andThen(
            releaseUntilConfirmed(held, held),
            Effect.sync(() => left.delete(held))
          )
        )
      }
      if (client.underWay + client.lines.size + left.size > 0) idle = 0
      else idle++
      if (idle < 2) yield* idle === 0 ? tick : Effect.yieldNow
    }
    if (left.size === 0) return
    const names = [...left].slice(0, longestList).map(({ name }) => name)
    yield* Effect.annotateLogs(
      Effect.logWarning(
        `A lock client was closed, and ${left.size} that it held could not be given back in time; they free themselves when their leases end.`
      ),
      { locks: left.size > longestList ? [...names, "..."] : names }
    )
  })

printsAs(LockClient.prototype, ({ clientId }) => ({ _id: "effect-redis-lock/RedisLock", clientId }))

const explanation = "is not a RedisLock service: only the layers of RedisLock make one"

/** The client of a service; undefined if the value is not a service. */
export const boundClient = (service: unknown): LockClient | undefined => {
  const client = Predicate.hasProperty(service, TypeId) ? service[TypeId] : undefined
  return client instanceof LockClient ? client : undefined
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

/** The client that serves a lock, semaphore or latch, and the keys that it has there. */
export interface Resolved {
  readonly client: LockClient
  readonly keys: LockKeys
}

/** A lock, semaphore or latch as a value. */
interface Named {
  readonly name: string
  /** The stem of its keys, if it is not that of the name. */
  readonly stem?: string | undefined
  /** The client that last served it. */
  at: Resolved | undefined
}

/** The keys of a value at a client, or why it can have none there. They are made once for as long as the client is the same. */
export const resolveAt = (self: Named, client: LockClient, isTogether = checkSlot): Resolved | InvalidLockName => {
  if (self.at?.client === client) return self.at
  const { name, stem } = self
  const keys = new LockKeys(client.options.keyPrefix + name, stem)
  return (
    checkCollision(name, keys.lock) ??
    isTogether(name, keys, (key) => client.store.slot(key)) ??
    (self.at = { client, keys })
  )
}
