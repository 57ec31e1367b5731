/**
 * Worlds that judge liveness: several processes use locks steadily, and everybody must be served. A seed decides the shape of the load:
 * how many processes and fibers there are, and how long their sections and pauses take. What must hold in every world:
 *
 * - A waiter is passed over by later requests of other processes no more often than its kind promises, and by later ones of its own
 *   process never.
 * - Nobody waits for a lock that is free for longer than its kind promises.
 * - Whatever begins ends: no fiber waits for something that only itself can give.
 * - Afterwards everything is free, nothing is left, and no permit is lost or made.
 */
import { randomOf } from "@effect-redis-lock/playground/VirtualTime"
import { Array as Arr, Cause, Effect, Exit, Fiber, Metric, References, Scheduler } from "effect"
import { LockLost, RedisLock } from "effect-redis-lock"
import type { LockClient } from "../../packages/core/dist/internal/client/LockClient.js"
import type { Service } from "../kit/testStore.ts"
import { decidedBy } from "./decidedBy.ts"
import { History } from "./history.ts"
import { forgottenAfter, isKept, look, reap } from "./leftovers.ts"
import { isGroundless } from "./losses.ts"
import { between, clientOver, Link, type Observer, type Random, Server } from "./network.ts"
import { VirtualTime } from "./virtualTime.ts"
import { type Report, WorldFailure } from "./world.ts"

/** What one fiber does again and again. */
export interface Role {
  /** What it uses: the names whose holders exclude one another, and how much of each it takes. */
  readonly uses: ReadonlyArray<Use>
  /** Runs a section. */
  readonly run: (section: Effect.Effect<void>, world: Inside) => Effect.Effect<void, unknown, RedisLock.RedisLock>
  /** The most often that later requests of other processes for one of its names may pass a request of this role. */
  readonly passes: (shape: Shape) => number
  /** Whether requests of one process are served in their order. Default: true. */
  readonly isQueued?: boolean
  /** Whether it asks for what it cannot get: its failure is expected. */
  readonly isHopeless?: boolean
  /** The longest that it pauses between two requests, milliseconds. Default: 0, as it is told when to ask. */
  readonly pausesMillis?: number
  /** Whether it waits behind an earlier request of another role, although there would be room for both. */
  readonly yieldsTo?: (other: Role) => boolean
}

export interface Use {
  readonly name: string
  /** How much of it there is, and how much is taken: readers take one of very many, writers all of them. */
  readonly of: number
  readonly takes: number
}

/** The shape of the load. */
export interface Shape {
  readonly processes: number
  readonly fibers: number
  readonly sectionMillis: number
  readonly pauseMillis: number
}

/** What a section may do inside. */
export interface Inside {
  readonly random: Random
  readonly sectionMillis: number
}

export interface LivenessKind {
  readonly roles: ReadonlyArray<Role>
  /** What a single fiber does, among all the others. */
  readonly alone?: Role
  /** Whether that fiber has a process for itself, which is further away from the server than the others. */
  readonly isFarAway?: boolean
  /** Another library's process, which works on the server itself. */
  readonly foreigner?: Foreigner
  /** How many servers there are, of which a majority decides. Default: 1. */
  readonly servers?: number
  /**
   * The faults that happen now and then. `members`: fewer than a majority of the servers stop, answer late, or come back empty. `errors`: for
   * a while any command may be refused with any error, or lose its connection. `slot`: it moves to another node of the cluster.
   */
  readonly faults?: ReadonlyArray<"break" | "failover" | "members" | "errors" | "slot">
  /** How many permits there are in all, by key. */
  readonly permits?: Readonly<Record<string, number>>
}

/** What another library does with the server's keys, until a time. */
export type Foreigner = (world: {
  readonly server: Server
  readonly random: Random
  readonly now: () => number
  readonly until: number
  /** It takes so much of a name, or gives that back if it is less than nothing. */
  readonly takes: (name: string, share: number) => void
  readonly note: (event: string) => void
}) => Effect.Effect<void>

export interface LivenessOptions extends LivenessKind {
  readonly seed: number
}

const fallbackMillis = 1000
const watchdogLeaseMillis = 30_000
const commandTimeoutMillis = 400
/** A lock that was handed over to somebody that does not ask is kept for two seconds. */
const reservedMillis = 2000
/** The first message may be missed, and a request may come just before: then the fallback interval, with its jitter, decides. */
const standstillMillis = 2 * fallbackMillis
/** Two requests that begin within this time may arrive in either order. */
const slackMillis = 50
/** The usual maximum for one way between a process that is far away and the server. */
const farMillis = 10
/** Its first request and its subscription, each ten times as slow as usual: until then it has no place. */
const farSlackMillis = 2 * 10 * farMillis
/** So often the load could have passed everybody. */
const sectionsInAll = ({ servers = 1 }: LivenessKind) => (servers === 1 ? 400 : 100)
/** Usually, and of a member that answers late, milliseconds. */
const [latencyMillis, slowMillis] = [2, 200]

interface Waiting {
  readonly role: Role
  readonly process: number
  /** The name of the worker. */
  readonly worker: string
  readonly since: number
  /** How often it was passed over, by name. */
  readonly passed: Map<string, number>
}

/** Runs one world to its end. Throws a {@link WorldFailure} if somebody is not served. */
export const livenessWorld = (options: LivenessOptions): Report =>
  decidedBy(options.seed, () => {
    const time = new VirtualTime(Date.UTC(2026, 0, 1))
    const exit = time.run(
      new LivenessWorld(options, time).play.pipe(
        Effect.provideService(Scheduler.MaxOpsBeforeYield, 2048),
        Effect.provideService(References.MinimumLogLevel, "None"),
        Effect.provideService(Metric.MetricRegistry, new Map())
      )
    )
    if (Exit.isSuccess(exit)) return exit.value
    throw Cause.squash(exit.cause)
  })

class LivenessWorld {
  readonly options: LivenessOptions
  readonly time: VirtualTime
  readonly random: Random
  readonly history: History
  readonly shape: Shape
  readonly servers: ReadonlyArray<Server>
  readonly links: Array<Link> = []
  readonly #waiting = new Set<Waiting>()
  readonly #inside = new Map<string, number>()
  /** Since when somebody could have entered, but nobody has. */
  #standsStillSince: number | undefined = undefined
  /** When the last fault ended. */
  #faultAt = Number.NEGATIVE_INFINITY
  #entered = 0
  #lost = 0
  #commands = 0

  constructor(options: LivenessOptions, time: VirtualTime) {
    this.options = options
    this.time = time
    this.history = new History(time)
    const random = (this.random = randomOf(options.seed))
    const one = <A>(values: ReadonlyArray<A>): A => values[between(random, 0, values.length - 1)]!
    this.shape = {
      processes: one([2, 2, 3]),
      fibers: one([1, 2, 3, 8]),
      sectionMillis: one(options.faults === undefined ? [5, 20, 100] : [20, 100]),
      pauseMillis: one(
        options.foreigner !== undefined ? [200, 1000] : options.faults === undefined ? [0, 5, 50] : [50, 200]
      )
    }
    const observer: Observer = {
      noted: (event) => this.history.note(event),
      executed: (server, request, result) => {
        this.#commands++
        this.history.executed(server, request, result)
      }
    }
    this.servers = Arr.range(1, options.servers ?? 1).map((number) => new Server(number, time, 0, observer))
  }

  fail(problem: string): Effect.Effect<never> {
    const failure = new WorldFailure(this.options.seed, `${problem} (${JSON.stringify(this.shape)})`, this.history)
    this.time.abort(failure)
    return Effect.die(failure)
  }

  readonly play = Effect.scoped(
    Effect.gen({ self: this }, function* () {
      const { fibers, processes } = this.shape
      const services = yield* Effect.forEach(Arr.range(1, processes), (number) => {
        const isFar = this.options.isFarAway === true && number === 1
        const faults = { latencyMillis: isFar ? farMillis : latencyMillis, loss: 0, lying: 0, lateMillis: 0 }
        const observer: Observer = { noted: (event) => this.history.note(event), executed: () => {} }
        const own = this.servers.map(
          (server) => new Link(number, server, this.random, faults, commandTimeoutMillis, observer)
        )
        this.links.push(...own)
        const options = { fallbackInterval: fallbackMillis, watchdogLeaseTime: watchdogLeaseMillis }
        return Effect.map(clientOver(own, options), ({ service }) => service)
      })
      for (const [key, count] of Object.entries(this.options.permits ?? {}))
        this.servers[0]!.db.set(key, "string", String(count))
      const sections = sectionsInAll(this.options)
      const loadMillis = sections * (this.shape.sectionMillis + 4)
      const isSteady = this.options.faults === undefined && this.options.foreigner === undefined
      const until = this.time.now + (isSteady ? loadMillis : Math.max(loadMillis, 30_000))
      const workers = yield* Effect.forEach(
        services.flatMap((service, process) =>
          Arr.range(1, this.options.isFarAway === true && process === 0 ? 1 : fibers).map((fiber) => ({
            service,
            process,
            fiber
          }))
        ),
        ({ fiber, process, service }) =>
          Effect.forkChild(
            Effect.provideService(
              this.work(
                this.#roleOf(process * fibers + fiber - 1),
                process,
                `process ${process}, fiber ${fiber}`,
                until
              ),
              RedisLock.RedisLock,
              service
            )
          )
      )
      if (this.options.foreigner !== undefined) workers.push(yield* Effect.forkChild(this.#foreign(until)))
      const faults = yield* Effect.forkChild(this.injectFaults(until))
      const watch = yield* Effect.forkChild(Effect.forever(Effect.andThen(Effect.sleep(100), this.checkProgress())))
      // a section may be lost with its connection, and then keep the lock until its lease ends
      const settleMillis = 2 * watchdogLeaseMillis + 2 * sections * this.shape.sectionMillis
      yield* Effect.timeoutOrElse(Fiber.joinAll(workers), {
        duration: until - this.time.now + settleMillis,
        orElse: () => this.fail("some wait without end")
      })
      yield* Fiber.interruptAll([faults, watch])
      for (const server of this.servers) server.heal()
      yield* Effect.sleep(5000)
      yield* this.checkEnd(services)
      return { entered: this.#entered, lost: this.#lost, refused: 0, commands: this.#commands }
    })
  )

  #foreign(until: number): Effect.Effect<void> {
    return this.options.foreigner!({
      server: this.servers[0]!,
      random: this.random,
      now: () => this.time.now,
      until,
      takes: (name, share) => {
        this.#inside.set(name, (this.#inside.get(name) ?? 0) + share)
        this.#standsStillSince = undefined
        this.#lookForStandstill()
      },
      note: (event) => this.history.note(event)
    })
  }

  #roleOf(worker: number): Role {
    const { alone, roles } = this.options
    return worker === 0 && alone !== undefined ? alone : roles[between(this.random, 0, roles.length - 1)]!
  }

  work(role: Role, process: number, worker: string, until: number): Effect.Effect<void, never, RedisLock.RedisLock> {
    const { random, shape, time } = this
    return Effect.gen({ self: this }, function* () {
      yield* Effect.sleep(between(random, 0, 100))
      while (time.now < until) {
        const waiting: Waiting = { role, process, worker, since: time.now, passed: new Map() }
        this.history.note(`process ${process} asks: ${nameOf(role)}`)
        this.#waiting.add(waiting)
        this.#lookForStandstill()
        const section = Effect.acquireUseRelease(
          Effect.suspend(() => this.#enter(waiting)),
          () => Effect.sleep(between(random, 1, shape.sectionMillis)),
          () => Effect.sync(() => this.#leave(waiting))
        )
        const inside: Inside = { random, sectionMillis: shape.sectionMillis }
        const exit = yield* Effect.exit(role.run(section, inside))
        this.#waiting.delete(waiting)
        this.#lookForStandstill()
        if (Exit.isFailure(exit)) this.#lost++
        if (Exit.isFailure(exit) && role.isHopeless !== true && !this.#mayFail(exit.cause)) {
          yield* this.fail(`a worker fails: ${Cause.pretty(exit.cause)}`)
        }
        yield* Effect.sleep(between(random, 0, shape.pauseMillis))
      }
    })
  }

  /** Whether a section may end like this: its lease outlives a broken connection, a slot that moves, and a minority of servers that fails. */
  #mayFail(cause: Cause.Cause<unknown>): boolean {
    const { faults = [] } = this.options
    if (!faults.includes("failover") && !faults.includes("errors")) return false
    return cause.reasons.every((reason) => {
      if (reason._tag !== "Fail") return false
      const { error } = reason
      return error instanceof LockLost
        ? !isGroundless(this.servers, error)
        : (error as { readonly _tag: string })._tag === "LockStoreError"
    })
  }

  #enter(entering: Waiting): Effect.Effect<void> {
    const { process, role, since, worker } = entering
    this.history.begin(worker, nameOf(role))
    this.#entered++
    this.#waiting.delete(entering)
    this.history.note(`process ${process} is inside: ${nameOf(role)}`)
    for (const { name, of, takes } of role.uses) {
      const inside = (this.#inside.get(name) ?? 0) + takes
      this.#inside.set(name, inside)
      // a failover may forget a grant, as documented
      if (inside > of && this.options.faults?.includes("failover") !== true) {
        return this.fail(`${inside} of ${of} of "${name}" are held`)
      }
    }
    this.#standsStillSince = undefined
    this.#lookForStandstill()
    for (const waiting of this.#waiting) {
      const slack = this.options.isFarAway === true && waiting.process === 0 ? farSlackMillis : slackMillis
      if (waiting.since + slack >= since || !shares(waiting.role, role)) continue
      const passes = waiting.role.passes(this.shape)
      const isOwn = waiting.process === process
      if (isOwn && waiting.role === role && role.isQueued !== false && waiting.since > this.#faultAt) {
        return this.fail(`process ${process} lets a later request of its own in first: ${nameOf(role)}`)
      }
      if (isOwn) continue
      for (const { name } of role.uses) waiting.passed.set(name, (waiting.passed.get(name) ?? 0) + 1)
      const passed = Math.max(...waiting.role.uses.map(({ name }) => waiting.passed.get(name) ?? 0))
      if (passed > passes && waiting.since > this.#faultAt) {
        return this.fail(
          `a request of process ${waiting.process} for ${nameOf(waiting.role)} is passed over more than ${passes} times, in ${this.time.now - waiting.since} ms`
        )
      }
    }
    return Effect.void
  }

  #leave({ process, role, worker }: Waiting): void {
    this.history.end(worker, nameOf(role))
    this.history.note(`process ${process} leaves: ${nameOf(role)}`)
    for (const { name, takes } of role.uses) this.#inside.set(name, this.#inside.get(name)! - takes)
    this.#lookForStandstill()
  }

  /** Whether somebody waits for what is free. */
  #lookForStandstill(): void {
    const could = [...this.#waiting].some((waiting) => this.#couldEnter(waiting))
    if (!could) this.#standsStillSince = undefined
    else this.#standsStillSince ??= this.time.now
  }

  #couldEnter({ role, since }: Waiting): boolean {
    const { isHopeless, uses, yieldsTo } = role
    return (
      isHopeless !== true &&
      uses.every(({ name, of, takes }) => (this.#inside.get(name) ?? 0) + takes <= of) &&
      (yieldsTo === undefined ||
        [...this.#waiting].every((other) => other.since > since + slackMillis || !yieldsTo(other.role)))
    )
  }

  checkProgress(): Effect.Effect<void> {
    return Effect.suspend(() => {
      const since = this.#standsStillSince
      if (since === undefined) return Effect.void
      const late = this.#faultAt > 0 ? reservedMillis : 0
      for (const waiting of this.#waiting) {
        if (!this.#couldEnter(waiting)) continue
        const stands = this.time.now - Math.max(since, waiting.since, this.#faultAt)
        if (stands > standstillMillis + late + (waiting.role.pausesMillis ?? 0)) {
          return this.fail(`a lock is free for ${stands} ms, and process ${waiting.process} waits for it`)
        }
      }
      return Effect.void
    })
  }

  injectFaults(until: number): Effect.Effect<void> {
    const { random, time } = this
    const { faults = [] } = this.options
    return Effect.gen({ self: this }, function* () {
      if (faults.length === 0) return
      while (time.now < until) {
        yield* Effect.sleep(between(random, 500, random() < 0.5 ? 1000 : 10_000))
        const fault = faults[between(random, 0, faults.length - 1)]
        if (fault === "members") {
          // the others go on
          yield* this.#failMembers()
          continue
        }
        this.#faultAt = Number.POSITIVE_INFINITY
        if (fault === "break") {
          this.links[between(random, 0, this.links.length - 1)]!.break()
          yield* Effect.sleep(100)
        } else if (fault === "errors") {
          yield* this.#failCommands()
        } else if (fault === "slot") {
          const [server] = this.servers as [Server]
          server.beginToMove()
          yield* Effect.sleep(between(random, 0, 1000))
          server.move(0)
          // by then all are subscribed again
          yield* Effect.sleep(1000)
        } else {
          const [server] = this.servers as [Server]
          server.replicate()
          yield* Effect.sleep(between(random, 1, 100))
          server.failOver()
          yield* Effect.sleep(100)
        }
        this.#faultAt = time.now
        for (const waiting of this.#waiting) waiting.passed.clear()
      }
    })
  }

  #failCommands(): Effect.Effect<void> {
    const { random } = this
    const fail = (errors: number) => {
      for (const link of this.links) link.faults = { ...link.faults, errors }
    }
    return Effect.gen({ self: this }, function* () {
      fail(0.05)
      if (random() < 0.5) for (const server of this.servers) server.refuse(random, random())
      yield* Effect.sleep(between(random, 100, 2000))
      for (const server of this.servers) server.refuses = undefined
      fail(0)
      // by then all are connected and subscribed again: the pauses between attempts have doubled meanwhile
      yield* Effect.sleep(2000)
    })
  }

  #failMembers(): Effect.Effect<void> {
    const { random } = this
    const first = between(random, 0, this.servers.length - 1)
    const failing = [...this.servers, ...this.servers].slice(first, first + (this.servers.length - 1) / 2)
    const kind = between(random, 0, 2)
    return Effect.gen({ self: this }, function* () {
      const links = this.links.filter(({ server }) => failing.includes(server))
      const answerIn = (latencyMillis: number) => {
        for (const link of links) link.faults = { ...link.faults, latencyMillis }
      }
      if (kind === 0) for (const server of failing) server.stop()
      if (kind === 1) answerIn(slowMillis)
      if (kind === 2) for (const server of failing) server.crash()
      // without its data it comes back later than any lease lasts, as the documentation asks for
      yield* Effect.sleep(kind === 2 ? watchdogLeaseMillis + 1 : between(random, 100, 5000))
      if (kind === 1) answerIn(latencyMillis)
      for (const server of failing) {
        if (kind === 2) server.restart(false)
        else server.resume()
      }
    })
  }

  checkEnd(services: ReadonlyArray<Service>): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      yield* Effect.sleep(Math.max(...this.servers.map(forgottenAfter)))
      for (const service of services) {
        const { lines, watchdog } = service as unknown as LockClient
        if (lines.size + watchdog.leases.length > 0) {
          yield* this.fail(`left behind: ${lines.size} queues, ${watchdog.leases.length} holdings`)
        }
      }
      for (const server of this.servers) {
        reap(server)
        for (const [key, count] of Object.entries(this.options.permits ?? {})) {
          const free = Number(server.db.get(key, "string") ?? count)
          if (free !== count) yield* this.fail(`${free} of ${count} permits of "${key}" are free in the end`)
        }
        for (const key of server.db.keys()) {
          if (!isKept(server, key)) yield* this.fail(`"${key}" is left: ${JSON.stringify(look(server, key))}`)
        }
      }
    })
  }
}

const nameOf = ({ uses }: Role): string => uses.map(({ name, of, takes }) => `${takes}/${of} of ${name}`).join(" + ")

const shares = (one: Role, other: Role): boolean =>
  one.uses.some(({ name }) => other.uses.some((use) => use.name === name))
