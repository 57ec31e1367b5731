/**
 * A chaos run: client processes enter sections under locks of some servers, while their connections, the servers and they themselves fail as a
 * seed decides. The checker and `judge.ts` say what must hold nevertheless.
 */
import { Deferred, Effect, Semaphore } from "effect"
import type { Redis } from "ioredis"
import { anomaliesOf, buildChecker, checked, type Verdict } from "./check.ts"
import { Clients, mortal, slots } from "./Clients.ts"
import { isAlone, type Kind, lockOf, now, permitsOf, STALL_MILLIS, type Told } from "./events.ts"
import { type Operation, operationsOf } from "./history.ts"
import { type Gap, gapsOf, type Judgement, judge, recoveriesOf, type Seen, type Violation } from "./judge.ts"
import { describeFault, type Fault, nemeses, type OnServer, scheduleOf } from "./nemeses.ts"
import { openRegister, type RegisterPlace, startRegister } from "./register.ts"
import { openSite, type ServerKind, type Site } from "./sites.ts"

export interface ChaosOptions {
  readonly seed: number
  /** For how long faults begin, milliseconds. */
  readonly millis: number
  /** Default: one server. */
  readonly server?: ServerKind
  /** A library of the benchmark's catalog, or `naive`. Default: ours. */
  readonly library?: string | undefined
  /** Default: all that the servers and the library can do. */
  readonly kinds?: ReadonlyArray<Kind> | undefined
  /** Whether grants need all replicas, where there are some: without it only tokens must rise. Default: unless it is steady. */
  readonly acknowledge?: boolean | undefined
  /** Where sections write. Default: a Redis. */
  readonly register?: RegisterPlace["system"]
  /** Whether they write with their tokens. Default: true. */
  readonly fenced?: boolean
  /** Whether clients and sentinels run with default options, and it is a violation if nobody gets in for three seconds. Not with `kill`. Default: false. */
  readonly steady?: boolean
  /** The kinds of fault. Default: all that let a lock be held by one at a time. */
  readonly only?: ReadonlyArray<string> | undefined
  /** Whether each fault begins when everybody has been served after the one before it, each kind in turn. Default: false. */
  readonly apart?: boolean
  /** Default: what the seed says. */
  readonly faults?: ReadonlyArray<Fault>
}

export interface ChaosReport extends Judgement {
  /** What the checker says; a reason, where it could not be built. */
  readonly verdicts: ReadonlyArray<Verdict> | string
  readonly faults: ReadonlyArray<Fault>
  /** How long after the end of each fault everybody whom it concerned was inside again, milliseconds, by kind. */
  readonly recoveries: ReturnType<typeof recoveriesOf>
  /** For how long nobody was inside after each fault, at most. */
  readonly gaps: ReadonlyArray<Gap>
  /** On the clock of the violations. */
  readonly began: number
  /** What was done to the locks. */
  readonly operations: ReadonlyArray<Operation>
  /** All that happened, a line each, in the order of time. */
  readonly events: ReadonlyArray<{ readonly at: number; readonly line: string }>
}

const PATIENCE_MILLIS = 5000
const LOOK_MILLIS = 50
/** Where faults are apart: from when everybody has been served after one until the next, and how long that is waited for. */
const APART_MILLIS = 2000
const RECOVERED_MILLIS = 30_000
/** How long the processes may take to close, and the server to be clean. */
const CLOSE_MILLIS = 15_000
/** For how long nobody may be inside in a steady run, besides the time for which a client stalled. */
const LONGEST_GAP_MILLIS = 3000
/** How long places stay when nobody waits any more. */
const PLACE_MILLIS = 60_000

const kindsOn: Readonly<Record<ServerKind, ReadonlyArray<Kind>>> = {
  single: ["fair", "plain", "permits", "leader", "reader", "writer"],
  sentinel: ["plain", "permits", "leader", "reader", "writer"],
  cluster: ["plain", "permits", "leader", "reader", "writer"],
  quorum: ["plain", "reader", "writer"]
}

/** `pnpm elections:measure` is about elections. */
const steadyKinds = (kinds: ReadonlyArray<Kind>): ReadonlyArray<Kind> =>
  kinds.flatMap((kind) => (kind === "leader" ? [] : kind === "permits" ? [kind, "counted"] : [kind]))

/** Whether a key may stay for a while when nothing is held and nobody waits: the last token of a name, and the label of a client. */
const isLasting = (key: string): boolean => /^(?:redisson_lock_token|effect_redis_lock_client):/.test(key)

/** Runs it all; the report says what came of it. */
export const chaos = Effect.fnUntraced(function* (options: ChaosOptions) {
  const { apart = false, fenced = true, library, millis, seed, server: kind = "single", steady = false } = options
  const { acknowledge = !steady } = options
  const own = steady ? steadyKinds(kindsOn[kind]) : kindsOn[kind]
  const kinds = options.kinds ?? (library === undefined ? own : ["plain"])
  // while the servers start
  void buildChecker()
  const notes: Array<{ readonly at: number; readonly line: string }> = []
  const note = (line: string) => void notes.push({ at: now(), line })
  const faults =
    options.faults ?? scheduleOf({ seed, millis, clients: slots, mortal, server: kind, only: options.only, apart })
  const late = (client: number, bytes: Buffer) => note(`client ${client}: late bytes arrive: ${wordsOf(bytes)}`)
  const withClocks = faults.some(({ fault }) => nemeses[fault]!.setsClocks === true)
  const site = yield* Effect.orDie(openSite(kind, { clients: slots, late, withClocks, slowSentinels: steady }))
  // short sections would write too much
  const register = steady ? undefined : yield* Effect.orDie(startRegister(options.register ?? "redis"))
  const clients = new Clients(site.ways, note, { acknowledge, fenced, kinds, library, register, server: kind, steady })
  yield* Effect.addFinalizer(() => Effect.sync(() => clients.killAll()))
  yield* clients.startAll
  const watch = new Watch(kinds, site.redises.values().next().value!)
  yield* Effect.forkScoped(watch.tick)
  if (kind === "single" && library === undefined) yield* Effect.forkScoped(watch.look)

  const began = now()
  note(`the run begins: seed ${seed}, ${faults.length} faults`)
  const isOver = () => now() - began > millis
  const played: Array<Fault> = []
  const begins: Array<number> = []
  const begin = (fault: Fault) => {
    played.push(fault)
    begins.push(now())
    note(describeFault(fault))
  }
  const serverFault = Semaphore.makeUnsafe(1)
  const commitOnServer = (fault: Fault, nemesis: OnServer) =>
    Effect.gen(function* () {
      // it may have waited for those before it
      if (isOver()) return Effect.void
      begin(fault)
      const before = clients.reachable
      const at = now()
      const redis = site.redises.get((yield* site.master(fault.of)).port)!
      let healedAt: number | undefined
      const heal = () => void (healedAt ??= now())
      yield* nemesis.play({ site, redis, heal }, fault)
      heal()
      clients.healed.push({ fault: fault.fault, at: healedAt! })
      yield* site.whole
      note("server: it serves again")
      return nemesis.breaks === true ? clients.comeBack(at, before) : Effect.void
    })
  const commit = (fault: Fault) => {
    const nemesis = nemeses[fault.fault]!
    if (nemesis.to === "server") return Effect.flatten(serverFault.withPermit(commitOnServer(fault, nemesis)))
    begin(fault)
    return nemesis.to === "process" ? clients.commit(fault, nemesis) : clients.disturb(fault, nemesis)
  }
  const play = (fault: Fault) =>
    Effect.gen(function* () {
      yield* until(began + fault.at)
      if (isOver()) return
      yield* commit(fault)
      if (apart) yield* Effect.andThen(clients.recovered(RECOVERED_MILLIS), Effect.sleep(APART_MILLIS))
    })
  yield* Effect.forEach(faults, play, { concurrency: apart ? 1 : "unbounded", discard: true })
  yield* until(began + millis)
  for (const { proxies } of site.ways) for (const proxy of proxies) proxy.deliverAll()
  yield* site.whole
  const calmSince = now()
  note("the last fault is over")
  const living = clients.finish()

  const closed = yield* Effect.timeoutOption(
    Effect.forEach(living, ({ gone }) => Deferred.await(gone), { discard: true }),
    PATIENCE_MILLIS + CLOSE_MILLIS
  )
  const violations: Array<Violation> = [...clients.violations]
  if (closed._tag === "None") {
    const what = "not all client processes have ended, though every fiber has only one section to go"
    violations.push({ at: now(), what })
  } else if (library === undefined) {
    const processes = new Set(living.map(({ process }) => process))
    const owners = clients.told.flatMap((event) =>
      event.event === "enters" && processes.has(event.process) ? [event.owner] : []
    )
    violations.push(...(yield* leftovers(site, new Set(owners.map((owner) => owner.slice(0, 36))))))
  }
  note("the run is over")

  const told = clients.told.sort((a, b) => a.at - b.at)
  const seen = [...clients.seen, ...watch.seen].sort((a, b) => a.at - b.at)
  const fibers = clients.fibers
  const isForgetful =
    (!acknowledge && (kind === "sentinel" || kind === "cluster")) ||
    faults.some(({ fault }) => nemeses[fault]!.forgets === true)
  const judgement = judge(told, seen, {
    isForgetful,
    calmSince,
    // a machine that stands still serves nobody
    patience: PATIENCE_MILLIS + watch.stalledSince(calmSince) + clients.stalledBetween(calmSince),
    living: living.map(({ process }) => ({ process, fibers }))
  })
  const operations = [
    ...operationsOf(judgement.sections, told, kinds),
    ...(register === undefined ? [] : yield* Effect.promise(() => readsOf(register, kinds)))
  ]
  const gaps = gapsOf(judgement.sections, kinds, [...begins, calmSince])
  if (steady) {
    const isTooLong = ({ at, millis }: Gap) => millis > LONGEST_GAP_MILLIS + clients.stalledBetween(at - millis, at)
    const what = ({ lock, millis }: Gap) => `nobody was let into ${lock} for ${millis.toFixed(0)} ms`
    violations.push(...gaps.filter(isTooLong).map((gap) => ({ at: gap.at, what: what(gap) })))
  }
  const verdicts = yield* Effect.promise(() => checked(operations))
  if (typeof verdicts !== "string") violations.push(...anomaliesOf(verdicts, isForgetful))
  const report: ChaosReport = {
    ...judgement,
    violations: [...judgement.violations, ...violations].sort((a, b) => a.at - b.at),
    verdicts,
    faults: played,
    recoveries: recoveriesOf(clients.healed, judgement.sections),
    gaps,
    began,
    operations,
    events: [...notes, ...watch.notes, ...clients.notes, ...told.flatMap(shown)]
      .sort((a, b) => a.at - b.at)
      .map(({ at, line }) => ({ at: at - began, line }))
  }
  return report
}, Effect.scoped)

const until = (time: number) => Effect.suspend(() => Effect.sleep(Math.max(0, time - now())))

/** What is in the sets at the end. */
const readsOf = async (place: RegisterPlace, kinds: ReadonlyArray<Kind>): Promise<ReadonlyArray<Operation>> => {
  const register = openRegister(place)
  const read = async (kind: Kind): Promise<Operation> => {
    const call = now()
    const elements = (await register.read(kind))!
    return { op: "read", lock: lockOf(kind), elements, call, return: now() }
  }
  const reads = await Promise.all(kinds.filter(isAlone).map(read))
  register.close()
  return reads
}

/** The words of commands, for people: lengths left out, and scripts shortened. */
const wordsOf = (bytes: Buffer): string => {
  const words = bytes
    .toString("latin1")
    .split("\r\n")
    .filter((word) => !/^[*$]\d+$/.test(word))
    .map((word) => (word.length > 40 ? `${word.slice(0, 8)}...` : word))
    .join(" ")
  return words.length > 600 ? `${words.slice(0, 600)}...` : words
}

/** A line of what was told. */
const shown = (event: Told): ReadonlyArray<{ readonly at: number; readonly line: string }> => {
  const who = `process ${event.process}`
  const line = () => {
    switch (event.event) {
      case "ready":
        return `${who} is ready`
      case "asks":
        return `${who}, ${event.fiber}: asks`
      case "writes":
        return `${who}, ${event.fiber}: adds ${event.element} to version ${event.version} as ${event.token}`
      case "wrote":
        return `${who}: ${event.element} ${event.isRefused ? "was refused" : "was written"}`
      case "ended":
        return `${who}, ${event.fiber}: its section ended: ${event.outcome}`
      case "stalled":
        return `${who}: stood still for ${(event.at - event.since).toFixed(0)} ms, and had a CPU for ${event.ran.toFixed(0)} of them`
      case "closed":
        return `${who}: closed`
      case "broke":
      case "uncaught":
        return `${who}: ${event.why}`
      default: {
        const more = event.until === undefined ? "" : `, for at most ${(event.until - event.at).toFixed(0)} ms more`
        return `${who}, ${event.fiber}: ${event.event} as ${event.owner}, token ${event.token}${more}`
      }
    }
  }
  return event.event === "stays" ? [] : [{ at: event.at, line: line() }]
}

/** The keys of a server that should not be there, where these clients have closed. */
export const keysLeft = async (redis: Redis, closed: ReadonlySet<string>): Promise<ReadonlyArray<string>> => {
  const keys = (await redis.keys("*")).filter((key) => !isLasting(key))
  const areFree = await Promise.all(
    keys.map(async (key) => {
      // how many permits there are when all are free
      const kind = (["permits", "counted"] as const).find((kind) => key === lockOf(kind))
      if (kind !== undefined) return Number(await redis.get(key)) === permitsOf(kind)
      // the place of a process that was killed is forgotten a minute after anybody last waited
      if (!key.includes("lock_places:")) return false
      const [places, left] = [await redis.zrange(key, "0", "-1"), await redis.pttl(key)]
      return left > 0 && left <= PLACE_MILLIS && places.every((place) => !closed.has(place.slice(0, 36)))
    })
  )
  return keys.filter((_, i) => areFree[i] !== true)
}

/** What is left on the servers but should not, where these clients have closed. */
const leftovers = (
  { kind, master, redises }: Site,
  closed: ReadonlySet<string>
): Effect.Effect<ReadonlyArray<Violation>> =>
  Effect.gen(function* () {
    const { port } = yield* master(0)
    const asked = kind === "quorum" || kind === "cluster" ? [...redises.values()] : [redises.get(port)!]
    return yield* Effect.promise(async () => {
      const until = now() + CLOSE_MILLIS
      while (true) {
        const left = (await Promise.all(asked.map((redis) => keysLeft(redis, closed).catch(() => [])))).flat()
        if (left.length === 0) return []
        if (now() > until) return [...new Set(left)].map((key) => ({ at: now(), what: `left in Redis: ${key}` }))
        await new Promise((resolve) => setTimeout(resolve, 100))
      }
    })
  })

/**
 * Looks at one server's locks and the fair lock's queue again and again, past all proxies, and notices when this process stands still, and with it
 * the proxies.
 */
class Watch {
  readonly seen: Array<Extract<Seen, { readonly event: "queue" | "stalled" }>> = []
  readonly notes: Array<{ readonly at: number; readonly line: string }> = []
  readonly #late: Array<{ readonly at: number; readonly millis: number }> = []
  readonly #kinds: ReadonlyArray<Kind>
  readonly #redis: Redis
  #last = ""

  constructor(kinds: ReadonlyArray<Kind>, redis: Redis) {
    this.#kinds = kinds.filter((kind) => permitsOf(kind) === 1)
    this.#redis = redis
  }

  async #lookOnce(): Promise<void> {
    const view = await Promise.all([
      this.#redis.lrange(`redisson_lock_queue:${lockOf("fair")}`, 0, -1),
      ...this.#kinds.map((kind) => this.#redis.hkeys(lockOf(kind)))
    ]).catch(() => undefined)
    if (view === undefined || JSON.stringify(view) === this.#last) return
    const at = now()
    this.#last = JSON.stringify(view)
    const [owners, ...held] = view
    this.seen.push({ event: "queue", at, owners })
    const shown = this.#kinds.map((kind, i) => `${kind}: ${held[i]!.join(", ") || "free"}`).join("; ")
    this.notes.push({ at, line: `server: ${shown}; queue: ${owners.join(", ") || "empty"}` })
  }

  readonly look = Effect.promise(async () => {
    while (true) {
      await new Promise((resolve) => setTimeout(resolve, LOOK_MILLIS))
      await this.#lookOnce()
    }
  })

  readonly tick = Effect.promise(async () => {
    for (let since = now(), at = since; ; since = at) {
      await new Promise((resolve) => setTimeout(resolve, LOOK_MILLIS))
      at = now()
      const millis = at - since - LOOK_MILLIS
      if (millis > LOOK_MILLIS) this.#late.push({ at, millis })
      if (at - since <= STALL_MILLIS) continue
      this.seen.push({ event: "stalled", at, since })
      this.notes.push({ at, line: `the proxies stood still for ${(at - since).toFixed(0)} ms` })
    }
  })

  /** For how long the machine had no time for us since then. */
  stalledSince(time: number): number {
    return this.#late.filter(({ at }) => at > time).reduce((sum, { millis }) => sum + millis, 0)
  }
}
