/**
 * A world of servers, clients and faults, decided by a seed, and what must hold in every world: only clients that may share a
 * lock are inside at the same time, tokens rise, nobody is told of a loss while the servers keep what it holds, nothing takes effect long
 * after its sender gave up, and once the faults are over every lock becomes free and no key is left, whatever still arrives.
 */
import { randomOf } from "@effect-redis-lock/playground/VirtualTime"
import {
  Array as Arr,
  Cause,
  Clock,
  Context,
  Effect,
  Exit,
  Fiber,
  Metric,
  Option,
  References,
  Scheduler,
  Scope
} from "effect"
import { type AcknowledgeOptions, Lock, type LockStore, RedisLock } from "effect-redis-lock"
import type { LockClient } from "../../packages/core/dist/internal/client/LockClient.js"
import { decidedBy } from "./decidedBy.ts"
import { History } from "./history.ts"
import { injectFaults } from "./injectFaults.ts"
import { playLatches } from "./latches.ts"
import { forgottenAfter, isKept, look, reap } from "./leftovers.ts"
import { isGroundless } from "./losses.ts"
import {
  between,
  clientOver,
  type Faults,
  Link,
  type Observer,
  Process,
  type Random,
  type Request,
  Server
} from "./network.ts"
import type { Result } from "./memory.ts"
import { type Client, Resource } from "./resource.ts"
import { VirtualTime } from "./virtualTime.ts"
import { type Failure, type Granted, type LockServices, Members, type Side, type Workload } from "./workload.ts"
import { withClosingSubscriptions } from "../kit/subscriptions.ts"

export interface WorldOptions extends Workload {
  readonly seed: number
  readonly servers: number
  /** Whether it is over soon, so that hundreds can be played: each client has one worker, of few sections, which mostly waits. */
  readonly isSmall?: boolean
  /** Whether each server has a replica that lags, and takes over now and then; and whether grants wait for it. */
  readonly failover?: "acknowledged" | "losing" | undefined
  /** Whether the servers' clocks are set while it runs. A lease may then end early, so that others get in. */
  readonly clocksStep?: boolean
  /** Whether any command may be refused with any error, or lose its connection just before or after it takes effect. */
  readonly errors?: boolean
  /** By how much the clocks of a cluster's nodes differ at most, between which the slot of all names moves. Default: it does not move. */
  readonly nodeSkewMillis?: number
  /** Whether processes stop, for up to three leases. */
  readonly stalls?: boolean
  /** Whether there are two clients in each process, over the same connections; and whether they are closed and replaced while it runs. */
  readonly sharesProcesses?: boolean
  /** The longest time after which something that was written to a broken connection still arrives. Default: a minute, or three seconds. */
  readonly lateMillis?: number
  /** Whether to check that no key is left behind or appears late. Default: true. */
  readonly leavesNothing?: boolean
}

/** How often a section was entered, lost, and not entered; how many commands there were. */
export interface Report {
  entered: number
  lost: number
  refused: number
  commands: number
}

const longestLeaseMillis = 60_000
const commandTimeoutMillis = 400
const clients = 3
/** By how much a client's clock runs faster than those of the servers, at most: what NTP corrects. */
const drift = 0.0005
/** How long a grant waits for a replica. */
const acknowledgedMillis = 100
const longestWaitMillis = 3000
const longestStepMillis = 10_000
/**
 * Longer than a place in a fair queue is kept after a time in which nobody asked; where clocks step, a client's mark may be ahead by
 * a step, too.
 */
const longestReprieveMillis = 10_000 + longestStepMillis

/** Operations that create something, or extend it. */
const creating: ReadonlySet<LockStore.Operation> = new Set<LockStore.Operation>([
  "fair_lock/acquire",
  "fair_lock/refresh",
  "fenced_lock/acquire",
  "latch/count_down",
  "latch/set",
  "lock/acquire",
  "multi_lock/acquire",
  "permit_semaphore/acquire",
  "read_lock/acquire",
  "record/write",
  "semaphore/acquire",
  "write_lock/acquire"
])

/** After how many steps a fiber yields. Below 3 Effect itself makes no progress. */
const steps = [2048, 40, 7, 4]

/** Runs one world to its end. Throws a {@link WorldFailure} with the history if a check fails. */
export const world = (options: WorldOptions): Report =>
  decidedBy(options.seed, () => {
    const time = new VirtualTime(Date.UTC(2026, 0, 1))
    const exit = time.run(
      new World(options, time).play.pipe(
        Effect.provideService(Scheduler.MaxOpsBeforeYield, steps[options.seed % steps.length]!),
        Effect.provideService(References.MinimumLogLevel, "None"),
        Effect.provideService(Metric.MetricRegistry, new Map())
      )
    )
    if (Exit.isSuccess(exit)) return exit.value
    throw Cause.squash(exit.cause)
  })

/** A client of a process: when it is closed, another takes its place. */
interface Seat {
  readonly process: Process
  /** The other client of the process, if there is one. */
  other: Seat | undefined
  context: Context.Context<LockServices>
  scope: Scope.Closeable
  readonly open: Effect.Effect<Context.Context<LockServices>, never, Scope.Scope>
}

/** A check of a world has failed. */
export class WorldFailure extends Error {
  readonly problem: string
  readonly history: History
  /** The history up to the failure, before the interrupted workers leave. */
  readonly file: ReturnType<History["file"]>

  constructor(seed: number, problem: string, history: History) {
    super(`seed ${seed}: ${problem}. What went before:\n${history.last(80)}`)
    this.problem = problem
    this.history = history
    this.file = history.file(problem)
  }
}

class World {
  readonly seed: number
  readonly sides: ReadonlyArray<Side>
  readonly time: VirtualTime
  readonly random: Random
  readonly history: History
  readonly servers: ReadonlyArray<Server>
  readonly links: Array<Link> = []
  readonly processes: Array<Process> = []
  readonly report: Report = { entered: 0, lost: 0, refused: 0, commands: 0 }
  readonly #resources: Map<string, Resource>
  readonly #faults: Faults
  readonly #forgets: boolean
  readonly #clocksStep: boolean
  /** By how much commands may take effect late, as their deadlines may be by another clock. */
  readonly #slackMillis: number
  readonly #nodeSkewMillis: number | undefined
  readonly #stalls: boolean
  readonly #sharesProcesses: boolean
  /** Whether something may be lost for good with a client that closes while it cannot reach the server. */
  readonly #keepsData: boolean
  readonly #failover: WorldOptions["failover"]
  readonly #leaseMillis: number
  readonly #isSmall: boolean
  readonly #workersEach: number
  readonly #sectionsEach: number
  /** Until when something may be held that a late command has acquired after a clock was set back. */
  #leasesEndAt = 0
  /** Whether such a command may have left a place in a fair queue, which stays until somebody asks for the lock. */
  #hasLatePlaces = false
  /** Anonymous permits that a late command has acquired after a clock was set back. */
  #latePermits = 0
  /** How often a latch was set or counted down too late, by a clock that was set back. */
  #lateLatchCommands = 0
  readonly #hasLatch: boolean
  readonly #leavesNothing: boolean
  /** Whether all is over and free: from now on no key may appear. */
  #isOver = false
  /** The token under which each database was last written a record: there is one lock that has any. */
  readonly #lastRecords = new WeakMap<Server["db"], bigint>()
  /** Since when an owner stands in the queue of a fair lock without a break. */
  readonly #queuedSince = new Map<string, number>()

  constructor(
    {
      clocksStep = false,
      errors = false,
      failover,
      isSmall = false,
      hasLatch = false,
      keepsData = false,
      lateMillis = isSmall ? 3000 : 60_000,
      leavesNothing = true,
      nodeSkewMillis,
      seed,
      servers: count,
      sharesProcesses = false,
      sides,
      stalls = false
    }: WorldOptions,
    time: VirtualTime
  ) {
    this.seed = seed
    this.sides = sides
    this.time = time
    this.history = new History(time)
    const random = (this.random = randomOf(seed))
    this.#clocksStep = clocksStep
    this.#slackMillis = clocksStep ? longestStepMillis : (nodeSkewMillis ?? 0)
    this.#nodeSkewMillis = nodeSkewMillis
    this.#stalls = stalls
    this.#sharesProcesses = sharesProcesses
    this.#keepsData = keepsData
    this.#failover = failover
    // in the longer one clocks drift apart by more than it takes to ask, and what is left behind is not free soon
    this.#leaseMillis = isSmall && seed % 2 === 0 ? longestLeaseMillis : 1000
    this.#isSmall = isSmall
    this.#workersEach = isSmall ? 1 : 3
    this.#sectionsEach = isSmall ? 3 : 6
    this.#hasLatch = hasLatch
    this.#leavesNothing = leavesNothing
    this.#faults = {
      latencyMillis: between(random, 1, 10),
      loss: [0, 0.001, 0.01][between(random, 0, 2)]!,
      lying: [0, 0.01, 0.1, 0.5][between(random, 0, 3)]!,
      lateMillis,
      errors: errors ? [0.01, 0.05, 0.2][between(random, 0, 2)]! : 0
    }
    // servers that forget their tokens go by their clocks, which may differ by less than they stay away
    this.#forgets = random() < 0.5 && !keepsData && !clocksStep && failover === undefined
    const skewMillis =
      nodeSkewMillis !== undefined ? nodeSkewMillis / 2 : this.#forgets ? this.#leaseMillis / 2 : 3_600_000
    const longestLag = [5, 300, 300][between(random, 0, 2)]!
    const lag = failover && (() => between(random, 1, longestLag))
    this.servers = Arr.range(1, count).map(
      (number) => new Server(number, time, between(random, -skewMillis, skewMillis), this.observer, lag)
    )
    this.#resources = new Map(
      sides.flatMap(({ names }) => names.map((name) => [name, new Resource(clocksStep, failover === "losing")]))
    )
  }

  readonly observer: Observer = {
    noted: (event) => this.history.note(event),
    executed: (server, request, result) => this.#executed(server, request, result)
  }

  #executed(server: Server, request: Request, result: Result): void {
    this.report.commands++
    this.history.executed(server, request, result)
    const [owner] = request.args
    if (request.operation === "fair_lock/release" || (Exit.isSuccess(result) && typeof result.value === "number")) {
      this.#queuedSince.delete(`${server.number} ${owner}`)
    }
    const age = this.time.now - request.sentAt
    if (
      age > commandTimeoutMillis * (1 + drift) + this.#slackMillis &&
      creating.has(request.operation) &&
      Exit.isSuccess(result)
    ) {
      this.fail(`${request.operation} takes effect ${Math.round(age)} ms after it was sent`)
    }
    // late by no more than a clock was set back: what it has acquired ends with its lease
    if (
      this.#slackMillis > 0 &&
      age > commandTimeoutMillis &&
      creating.has(request.operation) &&
      Exit.isSuccess(result)
    ) {
      this.#leasesEndAt = this.time.now + longestLeaseMillis
      this.#hasLatePlaces ||= request.operation.startsWith("fair_lock/")
      if (request.operation.startsWith("latch/")) this.#lateLatchCommands++
      // anonymous permits have no lease: those acquired late may never come back, as documented
      if (request.operation === "semaphore/acquire" && (result.value as ReadonlyArray<number>)[0] === 1) {
        this.#latePermits += Number(request.args[1])
      }
    }
    if (request.operation === "record/write" && Exit.isSuccess(result) && result.value === 1) {
      const token = BigInt(request.args[1]!)
      if (token < (this.#lastRecords.get(server.db) ?? 0n)) this.fail("a record is written under a lock that was lost")
      this.#lastRecords.set(server.db, token)
    }
    if (this.#isOver) this.#checkKeys(server, "appears late")
  }

  fail(problem: string): Effect.Effect<never> {
    const failure = new WorldFailure(this.seed, problem, this.history)
    this.time.abort(failure)
    return Effect.die(failure)
  }

  /** Checks that a server keeps nothing that belongs to holders and waiters. */
  #checkKeys(server: Server, what: string): void {
    if (!this.#leavesNothing) return
    for (const key of server.db.keys()) {
      if (!isKept(server, key))
        this.fail(`"${key}" ${what} on server ${server.number}: ${JSON.stringify(look(server, key))}`)
    }
  }

  /** Checks that nobody stays in the queue of a fair lock for longer than anybody waits. */
  #checkQueues(): void {
    const now = this.time.now
    const seen = new Set<string>()
    for (const server of this.servers) {
      for (const name of this.#resources.keys()) {
        for (const owner of server.db.get(`redisson_lock_queue:{${name}}`, "list") ?? []) {
          const entry = `${server.number} ${owner}`
          seen.add(entry)
          const since = this.#queuedSince.get(entry)
          if (since === undefined) this.#queuedSince.set(entry, now)
          else if (now - since > longestWaitMillis + 2 * commandTimeoutMillis) {
            this.fail(`${owner} has been in the queue of "${name}" for ${now - since} ms, longer than anybody waits`)
          }
        }
      }
    }
    for (const entry of this.#queuedSince.keys()) if (!seen.has(entry)) this.#queuedSince.delete(entry)
  }

  readonly play: Effect.Effect<Report> = Effect.scoped(
    Effect.gen({ self: this }, function* () {
      const { links, random, sides, time } = this
      const scope = yield* Effect.scope
      const seats = Arr.flatten(
        yield* Effect.forEach(Arr.range(1, this.#sharesProcesses ? 2 : clients), (number) => {
          const rate = 1 + (random() < 0.5 ? drift : -drift)
          const process = new Process(time)
          this.processes.push(process)
          const own = this.servers.map(
            (server) =>
              new Link(number, server, random, this.#faults, commandTimeoutMillis, this.observer, rate, process)
          )
          links.push(...own)
          const open = this.#makeClient(own, time.clockAt(rate, process.after.bind(process)))
          return this.#seats(process, open, this.#sharesProcesses ? 2 : 1)
        })
      )

      const chaos = yield* Effect.forkIn(
        injectFaults({
          random,
          links,
          servers: this.servers,
          forgets: this.#forgets,
          clocksStep: this.#clocksStep,
          failsOver: this.#failover !== undefined,
          refuses: (this.#faults.errors ?? 0) > 0,
          nodeSkewMillis: this.#nodeSkewMillis,
          processes: this.#stalls ? this.processes : [],
          // permits that a client cannot give back as it closes may never come back
          closes:
            this.#sharesProcesses && !this.#keepsData
              ? seats.map((seat) => Effect.andThen(this.#replace(seat), this.#awaitLeases))
              : [],
          leaseMillis: this.#leaseMillis,
          longestStepMillis
        }),
        scope
      )
      if (this.#hasLatch) {
        const released = Effect.scoped(
          playLatches(
            seats.map(
              ({ context }) =>
                (effect) =>
                  Effect.provideContext(effect, context)
            ),
            random,
            (event) => this.history.note(event),
            (problem) => this.fail(problem),
            () => this.#lateLatchCommands
          )
        )
        this.report.entered += yield* this.#within(600_000, released, "the rounds never end")
      }
      const workers = yield* Effect.forEach(
        sides.length === 0
          ? []
          : seats.flatMap((seat, i) =>
              Arr.range(1, this.#workersEach).map((number) => [seat, `client ${i + 1}, worker ${number}`] as const)
            ),
        ([seat, name]) => Effect.forkIn(Effect.provideContext(this.worker(name, seat), seat.context), scope)
      )
      yield* this.#within(600 * this.#leaseMillis, Fiber.joinAll(workers), "the workers never end")
      yield* Fiber.interrupt(chaos)

      this.history.note("the faults are over")
      for (const link of links) link.heal()
      for (const server of this.servers) server.heal()
      for (const process of this.processes) process.resume()
      // in small worlds nothing may need the end of its lease in order to be free
      const leasesMillis = this.#isSmall ? 2000 : 2 * this.#leaseMillis
      const settleMillis = leasesMillis + 10 * commandTimeoutMillis + (this.#clocksStep ? 2 * longestStepMillis : 0)
      // late commands arrive either when nothing else happens any more, or while others wait
      const isBusy = (random() < 0.25 || this.#sharesProcesses) && sides.length > 0 && !this.#isSmall
      if (isBusy) {
        const settledAt = time.now + settleMillis
        let isClosing = this.#sharesProcesses
        const isDone = () => !isClosing && time.now > Math.max(...links.map(({ restsAt }) => restsAt)) + 2000
        const late = yield* Effect.forEach(seats, (seat, i) =>
          Effect.forkIn(
            Effect.provideContext(this.late(`client ${i + 1}, late`, seat, settledAt, isDone), seat.context),
            scope
          )
        )
        if (isClosing) {
          yield* Effect.sleep(settleMillis)
          for (const seat of seats) yield* Effect.andThen(Effect.sleep(between(random, 0, 2000)), this.#close(seat))
          isClosing = false
        }
        while (!isDone()) {
          yield* Effect.sleep(500)
          if (time.now > settledAt) this.#checkQueues()
        }
        yield* this.#within(60_000, Fiber.joinAll(late), "the late workers never end")
      }
      yield* Effect.sleep(settleMillis)
      yield* Effect.sleep(Math.max(0, this.#leasesEndAt - time.now))
      const contexts = seats.map(({ context }) => context)
      if (this.#hasLatePlaces) yield* this.#ask(contexts[0]!, scope)
      yield* this.checkEnd(contexts)
      if (!isBusy) {
        const restsAt = Math.max(...links.map(({ restsAt }) => restsAt))
        this.#isOver = true
        yield* Effect.sleep(Math.max(0, restsAt - time.now) + 1)
        this.#isOver = false
      }
      for (const context of contexts) {
        for (const side of sides) {
          // some may never come back, see above
          if (this.#latePermits > 0 && side.names.includes("anonymous")) continue
          // a minority of a quorum may hear of the last release a little later
          yield* Effect.sleep(50)
          const free = yield* Effect.forkIn(
            Effect.provideContext(
              side.run(() => Effect.void, { waitTime: 0 }),
              context
            ),
            scope
          )
          const exit = yield* this.#within(60_000, Fiber.await(free), `"${side.names}" gives no answer`)
          if (Exit.isFailure(exit))
            return yield* this.fail(`"${side.names}" is not free in the end: ${Cause.pretty(exit.cause)}`)
        }
      }
      yield* Effect.sleep(settleMillis)
      yield* this.checkEnd(contexts)
      return this.report
    })
  )

  /** So many clients of one process. */
  #seats(process: Process, open: Seat["open"], count: number): Effect.Effect<ReadonlyArray<Seat>, never, Scope.Scope> {
    return Effect.gen({ self: this }, function* () {
      const outer = yield* Effect.scope
      const seats: Array<Seat> = []
      for (let i = 0; i < count; i++) {
        const scope = yield* Scope.fork(outer)
        const context = yield* Scope.provide(open, scope)
        seats.push({ process, context, scope, open, other: undefined })
      }
      for (const seat of seats) seat.other = seats.find((other) => other !== seat)
      return seats
    })
  }

  /** Closes a client, and opens another in its place. */
  #replace(seat: Seat): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      const { scope } = seat
      const opened = yield* Scope.make()
      seat.context = yield* Scope.provide(seat.open, opened)
      seat.scope = opened
      this.history.note("a client closes, another takes its place")
      yield* Scope.close(scope, Exit.void)
      this.history.note("the client is closed")
    })
  }

  /** Closes a client while all is well: nothing of it may be left. */
  #close(seat: Seat): Effect.Effect<void> {
    return Effect.suspend(() => {
      const { clientId } = Context.get(seat.context, RedisLock.RedisLock) as unknown as LockClient
      return Effect.andThen(
        this.#replace(seat),
        Effect.sync(() => {
          for (const server of this.servers) {
            for (const key of server.db.keys()) {
              const left = `${key} ${JSON.stringify(look(server, key))}`
              if (!isKept(server, key) && left.includes(clientId)) this.fail(`a client that has closed leaves ${left}`)
            }
          }
        })
      )
    })
  }

  /** What a client could not give back as it closed is free when its lease ends. */
  readonly #awaitLeases: Effect.Effect<void> = Effect.sync(() => {
    this.#leasesEndAt = this.time.now + longestLeaseMillis
  })

  /** Acquires every lock once, and waits for as long as places are kept for clients that could not report. */
  #ask(context: Context.Context<LockServices>, scope: Scope.Scope): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      for (const side of this.sides) {
        const asking = side.run(() => Effect.void, { waitTime: longestReprieveMillis })
        const exit = yield* this.#within(
          60_000,
          Fiber.await(yield* Effect.forkIn(Effect.provideContext(asking, context), scope)),
          `"${side.names}" gives no answer`
        )
        if (Exit.isFailure(exit)) {
          return yield* this.fail(`"${side.names}" is kept for those who are gone: ${Cause.pretty(exit.cause)}`)
        }
      }
    })
  }

  #within<A, E>(millis: number, effect: Effect.Effect<A, E>, otherwise: string): Effect.Effect<A, E> {
    return Effect.timeoutOrElse(effect, { duration: millis, orElse: () => this.fail(otherwise) })
  }

  /** Checks that neither clients nor servers keep any state. */
  checkEnd(contexts: ReadonlyArray<Context.Context<LockServices>>): Effect.Effect<void> {
    const forgetting = Effect.suspend(() => Effect.sleep(Math.max(...this.servers.map(forgottenAfter))))
    const checking = Effect.sync(() => {
      for (const context of contexts) {
        for (const service of [Context.get(context, RedisLock.RedisLock), ...Context.get(context, Members)]) {
          const { lines, watchdog } = service as unknown as LockClient
          const left = {
            lines: lines.size,
            fairQueues: lines.fairQueues.size,
            holdings: watchdog.leases.length
          }
          if (Object.values(left).some((size) => size > 0)) this.fail(`left behind: ${JSON.stringify(left)}`)
        }
      }
      for (const server of this.servers) {
        reap(server)
        this.#checkKeys(server, "is left")
        for (const name of ["permits", "anonymous"]) {
          const free = server.db.get(name, "string")
          const missing = 3 - Number(free ?? 3)
          if (missing < 0 || missing > (name === "anonymous" ? this.#latePermits : 0)) {
            this.fail(`${free} of 3 of "${name}" are free in the end`)
          }
        }
      }
    })
    return Effect.andThen(forgetting, checking)
  }

  enter(client: Client, token?: bigint): Effect.Effect<void> {
    return Effect.suspend(() => {
      const { names, share } = client.side
      this.history.begin(client.owner.description!, names.join(", "))
      this.history.note(`${names}: in (${JSON.stringify(share)})${token === undefined ? "" : ` ${token}`}`)
      const wrong = names
        .map((name) => this.#resources.get(name)!.enter(client, token))
        .find((wrong) => wrong !== undefined)
      return wrong === undefined ? Effect.void : this.fail(`who entered "${names}" ${wrong}`)
    })
  }

  leave(client: Client): Effect.Effect<void> {
    return Effect.sync(() => {
      const { names, share } = client.side
      this.history.end(client.owner.description!, names.join(", "))
      this.history.note(`${names}: out (${JSON.stringify(share)})`)
      for (const name of names) this.#resources.get(name)!.leave(client)
    })
  }

  options(): Lock.AcquireOptions {
    const { random } = this
    const leaseMillis = this.#leaseMillis
    const waits = this.#isSmall ? [0, 3 * leaseMillis, 3 * leaseMillis, 3 * leaseMillis] : [0, 300, longestWaitMillis]
    const waitTime = waits[between(random, 0, waits.length - 1)]!
    const kind = random()
    // a long lease outlives a server that comes back without its data
    const longest =
      this.#forgets || kind > 0.15
        ? leaseMillis
        : kind < 0.05
          ? longestLeaseMillis
          : Math.min(5 * leaseMillis, longestLeaseMillis)
    // renewals are not acknowledged
    const isFixed = kind < (this.#isSmall ? 0.7 : 0.4) || this.#failover === "acknowledged"
    return { waitTime, ...(isFixed ? { leaseTime: this.#isSmall ? leaseMillis : between(random, 100, longest) } : {}) }
  }

  /** What a section does when it goes on: never after the deadline of what it holds. */
  #step(client: Client, ensureHeld: Granted["ensureHeld"] = Effect.void): Effect.Effect<void> {
    const name = `a section of "${client.side.names.join()}"`
    return Effect.andThen(
      Effect.catch(ensureHeld, ({ reason }) =>
        // of one owner's sections, another one may have released the hold that this one was given
        reason === "Released" ? Effect.void : this.fail(`${name} takes a step after its deadline (${reason})`)
      ),
      () => (client.isOvertaken === true ? this.fail(`${name} takes a step beside a rival`) : Effect.void)
    )
  }

  /** Is inside for a while: never while the section waits to acquire, renew or release an inner lock. */
  work<R = never>(
    client: Client,
    { ensureHeld }: Granted,
    during: Effect.Effect<void, never, R>,
    token?: bigint
  ): Effect.Effect<void, never, R> {
    return Effect.acquireUseRelease(
      this.enter(client, token),
      () => Effect.andThen(during, this.#step(client, ensureHeld)),
      () => this.leave(client)
    )
  }

  /**
   * Tries to enter with the other client of its process, which knows nothing of what this one holds. An interruption does not wait until its
   * request is taken back: meanwhile this one would count as inside.
   */
  #rival({ side }: Client, name: string, other: Seat): Effect.Effect<void> {
    const client: Client = { side, owner: Symbol(name), process: other.process }
    const waitTime = this.random() < 0.5 ? 0 : 300
    const rival = Effect.ignore(
      side.run((granted) => this.work(client, granted, Effect.sleep(10), granted.token), { waitTime })
    ).pipe(Effect.provideContext(other.context))
    return Effect.flatMap(Effect.forkDetach(rival), (fiber) =>
      Effect.onInterrupt(Fiber.join(fiber), () => Effect.sync(() => fiber.interruptUnsafe()))
    )
  }

  stay(
    seat: Seat,
    side: Side,
    owner: symbol,
    isInner: boolean,
    granted: Granted
  ): Effect.Effect<void, Failure, LockServices> {
    const { random } = this
    return Effect.gen({ self: this }, function* () {
      const client: Client = { side, owner, process: seat.process }
      this.report.entered++
      yield* this.work(client, granted, Effect.sleep(between(random, 0, 300)), isInner ? undefined : granted.token)
      // entered again and left, perhaps several times
      for (let times = isInner ? 0 : between(random, 0, 3) - 1; times > 0; times--) {
        const inner = this.#innerOf(side)
        if (inner === undefined) break
        yield* Effect.ignore(inner.run((granted) => this.stay(seat, inner, owner, true, granted), this.options()))
        if (random() < 0.5) yield* this.work(client, granted, Effect.sleep(between(random, 0, 300)))
      }
      if (seat.other !== undefined && random() < 0.3) {
        yield* this.work(client, granted, this.#rival(client, `${owner.description}, other client`, seat.other))
      }
      const leaseMillis = this.#leaseMillis
      if (granted.renew !== undefined && this.#failover !== "acknowledged" && random() < 0.2) {
        yield* Effect.ignore(granted.renew(random() < 0.3 ? undefined : between(random, 100, leaseMillis)))
      }
      // in small worlds most sections outlast a lease that is not renewed, while others wait for its end
      const [share, least] = this.#isSmall ? [0.5, leaseMillis] : [0.2, 0]
      const millis = random() < share ? between(random, least, 2 * leaseMillis) : between(random, 0, 100)
      yield* this.work(client, granted, Effect.sleep(millis))
    })
  }

  /** Enters one section, or two of one owner at the same time. */
  visit(worker: string, side: Side, seat: Seat): Effect.Effect<void, Failure, LockServices> {
    const owner = Symbol(worker)
    const other = this.random() < 0.2 ? this.#innerOf(side) : undefined
    return other === undefined
      ? side.run((granted) => this.stay(seat, side, owner, false, granted), this.options())
      : Lock.withOwner(
          Effect.all(
            [side, other].map((side) =>
              side.run((granted) => this.stay(seat, side, owner, true, granted), this.options())
            ),
            { concurrency: "unbounded", discard: true }
          )
        )
  }

  /** A side that the holder of this one may acquire as well. */
  #innerOf(side: Side): Side | undefined {
    const candidates = this.sides.filter(
      ({ isReentrant, names, share }) =>
        isReentrant && names[0] === side.names[0] && (side.share === "nobody" || share === side.share)
    )
    return candidates[between(this.random, 0, candidates.length - 1)]
  }

  worker(name: string, seat: Seat): Effect.Effect<void, never, LockServices> {
    const { random, report, sides } = this
    return Effect.gen({ self: this }, function* () {
      for (let i = 0; i < this.#sectionsEach; i++) {
        yield* Effect.sleep(between(random, 0, 200))
        const side = sides[between(random, 0, sides.length - 1)]!
        const section = Effect.provideContext(this.visit(name, side, seat), seat.context)
        const exit = yield* Effect.exit(
          random() < 0.15 ? Effect.timeoutOption(section, between(random, 1, 600)) : section
        )
        if (Exit.isSuccess(exit)) continue
        const failure = Exit.findErrorOption(exit)
        if (Option.isNone(failure)) return yield* this.fail(`a worker dies: ${Cause.pretty(exit.cause)}`)
        if (failure.value._tag !== "LockLost") report.refused++
        else if (!isGroundless(this.servers, failure.value)) report.lost++
        else return yield* this.fail(`${failure.value.owner} is told that it has lost what the server keeps for it`)
      }
    })
  }

  /** Keeps acquiring after the faults are over, and must get in within the wait time. */
  late(name: string, seat: Seat, settledAt: number, isDone: () => boolean): Effect.Effect<void, never, LockServices> {
    const { random, sides, time } = this
    return Effect.gen({ self: this }, function* () {
      while (!isDone()) {
        yield* Effect.sleep(between(random, 0, 500))
        const side = sides[between(random, 0, sides.length - 1)]!
        const client: Client = { side, owner: Symbol(name), process: seat.process }
        const since = time.now
        const exit = yield* Effect.exit(
          side
            .run((granted) => this.work(client, granted, Effect.sleep(between(random, 0, 200)), granted.token), {
              waitTime: random() < 0.3 ? 100 : longestWaitMillis
            })
            .pipe(Effect.provideContext(seat.context))
        )
        if (Exit.isSuccess(exit) || time.now - since < longestWaitMillis || since < settledAt) continue
        return yield* this.fail(`"${side.names}" lets nobody in, though all is well: ${Cause.pretty(exit.cause)}`)
      }
    })
  }

  #makeClient(links: ReadonlyArray<Link>, clock: Clock.Clock) {
    // one that relies on messages for longer believes more of those that are late
    const fallbackInterval = this.#leaseMillis > 1000 ? 10_000 : links[0]!.random() < 0.5 ? 200 : 1500
    const acknowledge: AcknowledgeOptions = { replicas: "all", within: acknowledgedMillis }
    const options = {
      watchdogLeaseTime: this.#leaseMillis,
      fallbackInterval,
      ...(this.#failover === "acknowledged" ? { acknowledge } : {})
    }
    return withClosingSubscriptions(500)(clientOver(links, options)).pipe(
      Effect.map(({ members, service }) =>
        Context.make(RedisLock.RedisLock, service).pipe(Context.add(Members, members), Context.add(Clock.Clock, clock))
      ),
      Effect.provideService(Clock.Clock, clock)
    )
  }
}
