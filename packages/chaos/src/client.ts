/**
 * A client process of a chaos run with our library: `node dist/client.js '<settings>'` with an IPC channel.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { Cause, Duration, Effect, Exit, Layer, References, Schedule, type Scope } from "effect"
import {
  FairLock,
  type Holding,
  LeaderElection,
  Lock,
  type LockLost,
  type LockReentered,
  PermitSemaphore,
  ReadWriteLock,
  RedisLock,
  Semaphore
} from "effect-redis-lock"
import { ClientProcess } from "./clientProcess.ts"
import { type ClientSettings, type Kind, lockOf, now, permitsOf } from "./events.ts"

interface Held {
  /** What a holding and a permit have in common. */
  readonly grant: { readonly ensureHeld: Holding["ensureHeld"]; readonly remaining?: Holding["remaining"] }
  readonly owner: string
  readonly token?: string
}

const client = new ClientProcess()
const { settings } = client
const options = settings.leaseTime === undefined ? {} : { leaseTime: settings.leaseTime }

type AnyLock = Lock.Lock<RedisLock.RedisLock, LockReentered>

const underLock = (lock: AnyLock, section: (held: Held) => Effect.Effect<void, LockLost>) =>
  Lock.currentHolding(lock).pipe(
    Effect.flatMap((holding) => section({ grant: holding, owner: holding.owner, token: String(holding.token) })),
    Lock.withLock(lock, options),
    Effect.catchTag("LockReentered", Effect.die)
  )

/** A permit is of its scope, which no loss interrupts: the checks find it. */
const underPermit = (name: string, section: (held: Held) => Effect.Effect<void, LockLost>) =>
  Effect.scoped(
    Effect.gen(function* () {
      const permit = yield* PermitSemaphore.scoped(
        PermitSemaphore.make(name, { permits: permitsOf("permits") }),
        options
      )
      yield* section({ grant: permit, owner: permit.ids[0]! })
      yield* permit.release
    })
  )

/** Such a permit has no lease, so its holder cannot lose it. */
const underCounted = (name: string, section: (held: Held) => Effect.Effect<void, LockLost>) =>
  Effect.suspend(() => section({ grant: { ensureHeld: Effect.void }, owner: crypto.randomUUID() })).pipe(
    Semaphore.withPermits(Semaphore.make(name, { permits: permitsOf("counted") }), 1)
  )

const underLeadership = (name: string, section: (held: Held) => Effect.Effect<void, LockLost>) => {
  const election = LeaderElection.make(name)
  return LeaderElection.currentLeadership(election).pipe(
    Effect.flatMap(({ ensureLeading, owner, term }) =>
      section({ grant: { ensureHeld: ensureLeading }, owner, token: String(term) })
    ),
    LeaderElection.whileLeader(election)
  )
}

const lockOfKind = (kind: Kind): AnyLock => {
  const name = lockOf(kind)
  if (kind === "fair") return FairLock.make(name)
  if (kind === "reader") return ReadWriteLock.make(name).readLock
  if (kind === "writer") return ReadWriteLock.make(name).writeLock
  return Lock.make(name)
}

const under = (kind: Kind, section: (held: Held) => Effect.Effect<void, LockLost>) => {
  if (kind === "leader") return underLeadership(lockOf(kind), section)
  if (kind === "permits") return underPermit(lockOf(kind), section)
  if (kind === "counted") return underCounted(lockOf(kind), section)
  return underLock(lockOfKind(kind), section)
}

const inside = (fiber: string, kind: Kind, asked: number, { grant, owner, token }: Held) => {
  const about = { fiber, kind, asked, owner, ...(token === undefined ? {} : { token }) }
  const report = (event: "enters" | "stays" | "leaves") =>
    Effect.gen(function* () {
      // before the check: it may be stopped in between, and holds what it finds held later
      const at = now()
      const until = grant.remaining === undefined ? at : at + Duration.toMillis(yield* grant.remaining)
      yield* grant.ensureHeld
      client.tell({ event, at, until, ...about })
    })
  return Effect.gen(function* () {
    yield* report("enters")
    const add = yield* Effect.promise(() => client.read(about))
    for (const ends = now() + client.nextWork(); now() < ends;) {
      yield* Effect.sleep(Math.min(10, settings.work))
      yield* report("stays")
    }
    yield* Effect.promise(add)
    yield* report("leaves")
  })
}

const section = (fiber: string, kind: Kind) =>
  Effect.suspend(() => {
    const asked = now()
    client.tell({ event: "asks", at: asked, fiber, kind })
    return Effect.onExit(Effect.result(under(kind, (held) => inside(fiber, kind, asked, held))), (exit) =>
      Effect.sync(() => {
        const outcome = Exit.isFailure(exit)
          ? Cause.pretty(exit.cause)
          : exit.value._tag === "Success"
            ? "done"
            : `${exit.value.failure._tag}: ${exit.value.failure.message}`
        client.tell({ event: "ended", at: now(), fiber, kind, outcome })
      })
    )
  })

const fiber = (kind: Kind, name: string) =>
  Effect.gen(function* () {
    while (true) {
      // what is asked for after that is the last
      const last = client.isFinishing
      const result = yield* section(name, kind)
      if (last && result._tag === "Success") return
      yield* Effect.sleep(result._tag === "Success" ? settings.pause : 50)
    }
  })

const program = Effect.gen(function* () {
  yield* RedisLock.RedisLock
  client.tell({ event: "ready", at: now() })
  yield* Effect.forEach(client.fibers, ([kind, name]) => fiber(kind, name), { concurrency: "unbounded", discard: true })
})

const driverOf = ({ natMap, server, urls, watchdogLeaseTime }: ClientSettings, member: number) => {
  const isUsual = watchdogLeaseTime === undefined
  const common = { commandTimeout: isUsual ? undefined : "1 second", warnings: [] } as const
  const nat = natMap === undefined ? {} : { natMap: { ...natMap } }
  const ioredis = isUsual ? {} : { retryStrategy: () => 50 }
  if (server === "sentinel") {
    return IoRedis.layerSentinel({ ...common, sentinels: urls, ioredis: { ...ioredis, ...nat } })
  }
  if (server === "cluster") return IoRedis.layerCluster({ ...common, nodes: urls, ioredis: nat })
  return IoRedis.layer({ ...common, url: urls[member]!, ioredis })
}

const locksOver = (member: number) =>
  RedisLock.layer({
    watchdogLeaseTime: settings.watchdogLeaseTime,
    // a failover loses nothing that all replicas have
    ...(settings.natMap === undefined || !settings.acknowledge
      ? {}
      : { acknowledge: { replicas: "all", within: "500 millis" } as const })
  }).pipe(Layer.provide(driverOf(settings, member)))

const layer: Layer.Layer<RedisLock.RedisLock, unknown> =
  settings.server === "quorum"
    ? RedisLock.layerQuorum(settings.urls.map((_, member) => locksOver(member)))
    : locksOver(0)

const live: Effect.Effect<void, unknown, Scope.Scope> = Effect.gen(function* () {
  // a layer wants a server that answers
  const context = yield* Effect.retry(Layer.build(layer), Schedule.spaced("50 millis"))
  yield* Effect.provideContext(program, context)
})
const exit = await Effect.runPromiseExit(
  Effect.scoped(live).pipe(Effect.provideService(References.MinimumLogLevel, "None"))
)
client.close(Exit.isSuccess(exit) ? undefined : Cause.pretty(exit.cause))
