/**
 * What happens in a run: each kind of fault in one table, and the schedule, which a seed decides.
 */
import type { RedisServer } from "@effect-redis-lock/testing"
import { randomOf } from "@effect-redis-lock/playground/VirtualTime"
import { Effect } from "effect"
import { followersOf, type ServerKind, type Site } from "./sites.ts"
import type { LateProxy } from "./LateProxy.ts"
import type { Redis } from "ioredis"
import { readdirSync, rmSync } from "node:fs"
import { join } from "node:path"

export type Random = () => number

export const between = (random: Random, least: number, most: number) =>
  Math.floor(least + random() * (most - least + 1))

/** Small ones more often than large ones. */
const logarithmic = (random: Random, least: number, most: number) =>
  Math.round(least * Math.exp(random() * Math.log(most / least)))

/** Times are milliseconds. */
export interface Fault {
  readonly fault: string
  /** Since the beginning of the run. */
  readonly at: number
  /** The number of a client process, or of a member of the quorum. */
  readonly of: number
  readonly lasts: number
  /** How late what was held back arrives after that, or how far a clock is off. */
  readonly by?: number
  /** Whether it waits until the client is inside a section. */
  readonly inside?: boolean
}

type Play<A> = (at: A, fault: Fault) => Effect.Effect<void>

interface Common {
  /** How often it happens, compared with others; without it only where it is asked for. */
  readonly weight?: number
  readonly lasts: readonly [least: number, most: number]
  readonly by?: readonly [least: number, most: number]
  readonly says: (fault: Fault) => string
  /** The deployments in which it happens. Default: all. */
  readonly on?: ReadonlyArray<ServerKind>
  /** Whether connections of all clients break. */
  readonly breaks?: boolean
  /** Redis forgets what it has granted: two may hold a lock at once, as documented. */
  readonly forgets?: boolean
  /** It needs servers that were started with clocks that can be set. */
  readonly setsClocks?: boolean
}

/** To the connections of one client. */
export interface OnConnections extends Common {
  readonly to: "connections"
  readonly play: Play<ReadonlyArray<LateProxy>>
}

/** To a client process. */
export interface OnProcess extends Common {
  readonly to: "process"
  readonly signal: "SIGKILL" | "SIGSTOP" | "block"
}

/** To a server: one fault of the servers at a time. */
export interface OnServer extends Common {
  readonly to: "server"
  readonly play: Play<ServerAt>
}

export interface ServerAt {
  readonly site: Site
  /** The master, or the member. */
  readonly redis: Redis
  /** It is over for the clients; by default when all of it is. */
  readonly heal: () => void
}

export type Nemesis = OnConnections | OnProcess | OnServer

const afterwards = (lasts: number, end: () => void) => Effect.andThen(Effect.sleep(lasts), Effect.sync(end))

const all = (proxies: ReadonlyArray<LateProxy>, begin: (proxy: LateProxy) => () => void, lasts: number) =>
  Effect.suspend(() => {
    const ends = proxies.map(begin)
    return afterwards(lasts, () => ends.forEach((end) => end()))
  })

/** Disturbs a server for a while. */
const forAWhile =
  (begin: (server: RedisServer.RedisServer) => Effect.Effect<void, unknown>, end: typeof begin): OnServer["play"] =>
  ({ site }, { lasts, of }) =>
    Effect.gen(function* () {
      const server = yield* site.master(of)
      yield* Effect.orDie(begin(server))
      yield* Effect.sleep(lasts)
      yield* Effect.orDie(end(server))
    })

/** Sets an option of the server for a while. */
const configured = ({ redis }: ServerAt, { lasts }: Fault, settings: Record<string, readonly [string, string]>) =>
  Effect.promise(async () => {
    for (const [name, [value]] of Object.entries(settings)) await redis.config("SET", name, value)
    await new Promise((resolve) => setTimeout(resolve, lasts))
    for (const [name, [, before]] of Object.entries(settings)) await redis.config("SET", name, before)
  })

/** Its replicas hear nothing any more. */
const cutOffFrom = (replicas: ReadonlyArray<Redis>, master: Redis) =>
  Effect.promise(async () => {
    for (const replica of replicas) await replica.config("SET", "masterauth", "wrong")
    await master.call("CLIENT", "KILL", "TYPE", "replica")
  })

/** Waits until another server has taken over. */
const succession = (site: Site, before: number) =>
  Effect.gen(function* () {
    while ((yield* site.master(0)).port === before) yield* Effect.sleep(20)
  })

/** Its replicas hear nothing of what happens meanwhile, and then it dies. */
export const dyingUnheard = <R>({ heal, redis, site }: ServerAt, meanwhile: Effect.Effect<unknown, never, R>) =>
  Effect.gen(function* () {
    const before = yield* site.master(0)
    const replicas = yield* followersOf(site.redises, before)
    yield* cutOffFrom(replicas, redis)
    yield* meanwhile
    yield* before.kill
    for (const replica of replicas) yield* Effect.promise(() => replica.config("SET", "masterauth", ""))
    yield* succession(site, before.port)
    heal()
    yield* Effect.orDie(before.restart)
  })

const alone: ReadonlyArray<ServerKind> = ["single", "quorum"]
const replicated: ReadonlyArray<ServerKind> = ["sentinel", "cluster"]

/** Sets its clock for a while: what was granted ends so much sooner or later than its holder believes. */
const skewed = (direction: 1 | -1): OnServer => ({
  to: "server",
  lasts: [100, 8000],
  by: [100, 1900],
  on: alone,
  forgets: true,
  setsClocks: true,
  says: ({ by, lasts }) => `its clock is ${by} ms ${direction === 1 ? "ahead" : "behind"} for ${lasts} ms`,
  play: ({ redis, site }, { by, lasts }) =>
    Effect.gen(function* () {
      const setClock = site.clocks.get(redis.options.port!)!
      yield* setClock(direction * by!)
      yield* Effect.sleep(lasts)
      yield* setClock(0)
    })
})

export const nemeses: Readonly<Record<string, Nemesis>> = {
  late: {
    to: "connections",
    weight: 6,
    lasts: [20, 2500],
    by: [100, 60_000],
    says: ({ by, lasts }) =>
      `what it sends is held back for ${lasts} ms, its connections break, and the bytes arrive ${by} ms later`,
    play: (proxies, { by, lasts }) =>
      Effect.suspend(() => {
        const breaks = proxies.map((proxy) => proxy.hold())
        return afterwards(lasts, () => breaks.forEach((breakLate) => breakLate(by!)))
      })
  },
  reset: {
    to: "connections",
    weight: 2,
    lasts: [1, 1],
    says: () => "its connections break",
    play: (proxies) => Effect.sync(() => proxies.forEach((proxy) => proxy.cut()))
  },
  silence: {
    to: "connections",
    weight: 2,
    lasts: [200, 6000],
    says: ({ lasts }) => `nothing passes between it and the server for ${lasts} ms, and then everything`,
    play: (proxies, { lasts }) => all(proxies, (proxy) => proxy.silence(), lasts)
  },
  lateMessages: {
    to: "connections",
    weight: 3,
    lasts: [500, 8000],
    says: ({ lasts }) => `the messages of its subscriptions come ${lasts} ms late, longer than a lease or not`,
    play: (proxies, { lasts }) => all(proxies, (proxy) => proxy.holdMessages(), lasts)
  },
  dropRequests: {
    to: "connections",
    weight: 2,
    lasts: [200, 5000],
    says: ({ lasts }) => `what it sends is lost for ${lasts} ms, then its connections break`,
    play: (proxies, { lasts }) => all(proxies, (proxy) => proxy.drop("requests"), lasts)
  },
  dropReplies: {
    to: "connections",
    weight: 2,
    lasts: [200, 5000],
    says: ({ lasts }) => `what the server sends it is lost for ${lasts} ms, then its connections break`,
    play: (proxies, { lasts }) => all(proxies, (proxy) => proxy.drop("replies"), lasts)
  },
  kill: {
    to: "process",
    signal: "SIGKILL",
    weight: 2,
    lasts: [100, 2000],
    says: ({ lasts }) => `SIGKILL; another takes its place after ${lasts} ms`
  },
  stop: {
    to: "process",
    signal: "SIGSTOP",
    weight: 3,
    lasts: [200, 8000],
    says: ({ lasts }) => `SIGSTOP for ${lasts} ms`
  },
  block: {
    to: "process",
    signal: "block",
    weight: 2,
    lasts: [200, 5000],
    says: ({ lasts }) => `its event loop stands still for ${lasts} ms`
  },
  restart: {
    to: "server",
    breaks: true,
    weight: 2,
    lasts: [100, 4000],
    on: alone,
    says: ({ lasts }) => `SIGKILL, and restarted with its data after ${lasts} ms`,
    play: forAWhile(
      ({ kill }) => kill,
      ({ restart }) => restart
    )
  },
  pause: {
    to: "server",
    weight: 1,
    lasts: [200, 6000],
    on: alone,
    says: ({ lasts }) => `SIGSTOP for ${lasts} ms`,
    play: forAWhile(
      ({ pause }) => pause,
      ({ resume }) => resume
    )
  },
  sleep: {
    to: "server",
    weight: 1,
    lasts: [200, 5000],
    on: alone,
    says: ({ lasts }) => `DEBUG SLEEP for ${lasts} ms`,
    play: ({ redis }, { lasts }) => Effect.promise(() => redis.call("DEBUG", "SLEEP", lasts / 1000).catch(() => {}))
  },
  flush: {
    to: "server",
    weight: 1,
    lasts: [1, 1],
    says: () => "SCRIPT FLUSH",
    play: ({ redis }) => Effect.promise(() => redis.script("FLUSH"))
  },
  deaf: {
    to: "server",
    breaks: true,
    weight: 1,
    lasts: [1, 1],
    says: () => "the connections of all subscriptions are closed",
    play: ({ redis }) => Effect.promise(() => redis.call("CLIENT", "KILL", "TYPE", "pubsub"))
  },
  full: {
    to: "server",
    weight: 1,
    lasts: [200, 4000],
    says: ({ lasts }) => `its memory is full for ${lasts} ms`,
    play: (at, fault) => configured(at, fault, { maxmemory: ["1", "0"] })
  },
  promote: {
    to: "server",
    weight: 2,
    lasts: [1, 1],
    on: replicated,
    says: () => "a planned failover",
    play: ({ site }) => site.promote
  },
  failover: {
    to: "server",
    breaks: true,
    weight: 2,
    lasts: [0, 3000],
    on: replicated,
    says: ({ lasts }) => `the master dies, and comes back ${lasts} ms after another one has taken over`,
    play: ({ heal, site }, { lasts }) =>
      Effect.gen(function* () {
        const before = yield* site.master(0)
        yield* before.kill
        yield* succession(site, before.port)
        heal()
        yield* Effect.sleep(lasts)
        yield* Effect.orDie(before.restart)
      })
  },
  cutOff: {
    to: "server",
    breaks: true,
    weight: 1,
    lasts: [300, 1500],
    on: replicated,
    says: ({ lasts }) => `the replicas hear nothing from the master for ${lasts} ms, and then it dies`,
    play: (at, { lasts }) => dyingUnheard(at, Effect.sleep(lasts))
  },
  standstill: {
    to: "server",
    weight: 1,
    lasts: [1, 1],
    on: replicated,
    says: () => "SIGSTOP of the master until another one has taken over",
    play: ({ heal, site }) =>
      Effect.gen(function* () {
        const before = yield* site.master(0)
        yield* Effect.orDie(before.pause)
        yield* succession(site, before.port)
        heal()
        yield* Effect.orDie(before.resume)
      })
  },
  migrate: {
    to: "server",
    weight: 2,
    lasts: [1, 2000],
    on: ["cluster"],
    says: ({ lasts }) => `the slot of the locks moves to another master, and is open for ${lasts} ms`,
    play: ({ site }, { lasts }) => site.migrate!(lasts)
  },
  lose: {
    to: "server",
    breaks: true,
    lasts: [100, 4000],
    on: alone,
    forgets: true,
    says: ({ lasts }) => `SIGKILL, and restarted without its data after ${lasts} ms`,
    play: (at, fault) =>
      Effect.gen(function* () {
        const [, directory] = (yield* Effect.promise(() => at.redis.config("GET", "dir"))) as [string, string]
        yield* forAWhile(
          ({ kill }) => kill,
          ({ restart }) => {
            for (const file of readdirSync(directory)) rmSync(join(directory, file), { recursive: true })
            return restart
          }
        )(at, fault)
      })
  },
  ahead: skewed(1),
  behind: skewed(-1),
  forget: {
    to: "server",
    lasts: [1, 1],
    on: alone,
    forgets: true,
    says: () => "FLUSHALL: all grants are forgotten",
    play: ({ redis }) => Effect.promise(() => redis.flushall())
  },
  evict: {
    to: "server",
    lasts: [50, 500],
    on: alone,
    forgets: true,
    says: ({ lasts }) => `it evicts keys for ${lasts} ms`,
    play: (at, fault) =>
      configured(at, fault, { "maxmemory-policy": ["allkeys-random", "noeviction"], maxmemory: ["1", "0"] })
  }
}

export interface ScheduleOptions {
  readonly seed: number
  /** How long faults begin for. */
  readonly millis: number
  readonly clients: number
  /** Those that may be killed and stopped: their leases are short. */
  readonly mortal: ReadonlyArray<number>
  readonly server: ServerKind
  /** The kinds of fault. Default: all with a weight. */
  readonly only?: ReadonlyArray<string> | undefined
  /** Whether each begins when everybody has been served after the one before it, each kind in turn. */
  readonly apart?: boolean | undefined
}

/** Before the first fault everybody has had a turn. */
const QUIET_MILLIS = 1500

export const scheduleOf = ({
  apart = false,
  clients,
  millis,
  mortal,
  only,
  seed,
  server
}: ScheduleOptions): ReadonlyArray<Fault> => {
  const random = randomOf(seed)
  const choice = Object.entries(nemeses).flatMap(([fault, nemesis]) => {
    const weight = only === undefined ? (nemesis.weight ?? 0) : only.includes(fault) ? (nemesis.weight ?? 1) : 0
    return weight > 0 && nemesis.on?.includes(server) !== false ? [{ fault, nemesis, weight }] : []
  })
  const weights = choice.reduce((sum, { weight }) => sum + weight, 0)
  const faults: Array<Fault> = []
  for (let at = QUIET_MILLIS; at < millis; at += logarithmic(random, 150, 2500)) {
    let pick = random() * weights
    const { fault, nemesis } = apart
      ? choice[faults.length % choice.length]!
      : (choice.find(({ weight }) => (pick -= weight) < 0) ?? choice[0]!)
    const mayBe = nemesis.to === "process" ? mortal : Array.from({ length: clients }, (_, i) => i)
    faults.push({
      ...{ at, fault, of: mayBe[between(random, 0, mayBe.length - 1)]! },
      lasts: logarithmic(random, Math.max(1, nemesis.lasts[0]), nemesis.lasts[1]),
      ...(nemesis.by === undefined ? {} : { by: logarithmic(random, ...nemesis.by) })
    })
  }
  return faults
}

/** One line for people. */
export const describeFault = (fault: Fault): string => {
  const { says, to } = nemeses[fault.fault]!
  return `${to === "server" ? "server" : `client ${fault.of}`}: ${says(fault)}`
}
