/**
 * A world of servers, clients and faults that a seed decides, and what must hold in each: nobody is in besides who may be,
 * tokens rise, and in the end, when all is well again, everything is free.
 */
import { Array as Arr, Cause, Clock, Context, Effect, Exit, Fiber, Layer, Option, Scheduler } from "effect"
import {
  type AcquireError,
  type Holding,
  Lock,
  type LockLost,
  type LockReentered,
  type NotLockOwner,
  type QuorumNotReached,
  RedisLock
} from "effect-redis-lock"
import { TestClock } from "effect/testing"
import type { LockClient } from "../../packages/core/dist/internal/LockClient.js"
import { clientOf, type Service, serviceOf } from "../compose/stores.ts"
import { between, Connection, type Faults, type Random, randomOf, Server, type Trace } from "./network.ts"

/** The services of a client, one for each server. */
export class Members extends Context.Service<Members, ReadonlyArray<Service>>()("Members") {}

/** A lock, one side of it, or permits. */
export interface Side {
  /** What it takes. */
  readonly names: ReadonlyArray<string>
  /** Who may be in besides: nobody, readers, or who takes no more than what is left. */
  readonly share: "nobody" | "readers" | { readonly permits: number; readonly of: number }
  readonly isReentrant: boolean
  /** Runs a section that is told what it was granted. */
  readonly run: (
    section: (granted: Granted) => Effect.Effect<void, Failure, Client>,
    options: Lock.AcquireOptions
  ) => Effect.Effect<void, Failure, Client>
}

export interface Granted {
  /** Where tokens of this kind rise. */
  readonly token?: bigint
  readonly renew?: Holding<unknown>["renew"]
}

/** Its locks are on one server, or on a quorum. */
export type Client = RedisLock.RedisLock | Members

export type Failure = AcquireError | LockReentered | LockLost | NotLockOwner | QuorumNotReached

export interface Cast {
  readonly sides: ReadonlyArray<Side>
  /** Whether servers that crash come back with their data always: what has no lease would never come back. */
  readonly keepsData?: boolean
}

export interface WorldOptions extends Cast {
  readonly seed: number
  readonly servers: number
}

/** How often a section was entered, lost, and not entered. */
export interface Report {
  entered: number
  lost: number
  refused: number
}

const leaseMillis = 1000
const commandTimeoutMillis = 400
const clients = 3
const workersEach = 3
const sectionsEach = 6

/** Somebody who may enter again what he has entered. */
interface Guest {
  readonly side: Side
  readonly owner: symbol
}

/** Who is in, under one name, and its last tokens. */
class Room {
  readonly #inside: Array<Guest> = []
  #lastWritten = 0n
  #lastSeen = 0n

  /** What is wrong with that, if anything. */
  enter(guest: Guest, token: bigint | undefined): string | undefined {
    const { share } = guest.side
    const others = this.#inside.filter(({ owner }) => owner !== guest.owner).map(({ side }) => side.share)
    const isCrowded =
      typeof share === "object"
        ? others.reduce((sum, other) => sum + (typeof other === "object" ? other.permits : 0), share.permits) > share.of
        : others.some((other) => share === "nobody" || other === "nobody")
    this.#inside.push(guest)
    if (isCrowded) return `is in besides ${others.length} others`
    // of readers, no writer is known to a server without its data
    if (token === undefined || (share === "readers" && token === 0n)) return undefined
    const least = share === "readers" ? this.#lastWritten : this.#lastSeen + 1n
    if (token < least) return `has token ${token}, which is below ${least}`
    if (share === "nobody") this.#lastWritten = token
    if (token > this.#lastSeen) this.#lastSeen = token
    return undefined
  }

  leave(guest: Guest): void {
    this.#inside.splice(this.#inside.indexOf(guest), 1)
  }
}

/** After how many steps a fiber gives way to others, wherever it is. Below 3 Effect itself gets nowhere. */
const steps = [2048, 40, 7, 4]

const tickMillis = 5

/** A little time, in which every fiber gets as far as it can. */
const tick = Effect.andThen(
  TestClock.adjust(tickMillis),
  Effect.callback<void>((resume) => void setImmediate(() => setImmediate(() => resume(Effect.void))))
)

/** Runs one world to its end. */
export const world = (options: WorldOptions) =>
  Effect.provideService(play(options), Scheduler.MaxOpsBeforeYield, steps[options.seed % steps.length]!)

const play = Effect.fnUntraced(function* ({ keepsData = false, seed, servers: count, sides }: WorldOptions) {
  const random = randomOf(seed)
  const start = Date.UTC(2026, 0, 1)
  yield* TestClock.setTime(start)
  const events: Array<string> = []
  const trace: Trace = (event) =>
    Effect.map(Clock.currentTimeMillis, (now) => void events.push(`${String(now - start).padStart(6)} ${event}`))
  const fail = (what: string) =>
    Effect.die(new Error(`seed ${seed}: ${what}. What went before:\n${events.slice(-80).join("\n")}`))
  const until = Effect.fnUntraced(function* (isDone: () => boolean, otherwise: string) {
    for (let waited = 0; waited < 600_000; waited += tickMillis) {
      if (isDone()) return
      yield* tick
    }
    return yield* fail(otherwise)
  })

  const scope = yield* Effect.scope
  const faults: Faults = { latencyMillis: between(random, 1, 10), loss: [0, 0.001, 0.01][between(random, 0, 2)]! }
  // servers that forget their tokens go by their clocks, which may differ by less than they stay away
  const forget = random() < 0.5 && !keepsData
  const skewMillis = forget ? leaseMillis / 2 : 3_600_000
  const servers = yield* Effect.forEach(Arr.range(1, count), (i) =>
    Server.make(between(random, -skewMillis, skewMillis), (event) => trace(`server ${i}: ${event}`))
  )
  const connections: Array<Connection> = []
  const contexts = yield* Effect.forEach(Arr.range(1, clients), () =>
    Effect.suspend(() => {
      const own = servers.map((server) => new Connection(server, random, faults, commandTimeoutMillis, scope))
      connections.push(...own)
      return client(own)
    })
  )

  const rooms = new Map(sides.flatMap(({ names }) => names.map((name) => [name, new Room()])))
  const report: Report = { entered: 0, lost: 0, refused: 0 }

  const enter = (guest: Guest, token?: bigint) => {
    const { names, share } = guest.side
    return Effect.andThen(
      trace(`${names}: in (${JSON.stringify(share)})${token === undefined ? "" : ` ${token}`}`),
      Effect.suspend(() => {
        const wrong = names.map((name) => rooms.get(name)!.enter(guest, token)).find((wrong) => wrong !== undefined)
        return wrong === undefined ? Effect.void : fail(`who entered "${names}" ${wrong}`)
      })
    )
  }

  const leave = (guest: Guest) => {
    const { names, share } = guest.side
    return Effect.andThen(
      trace(`${names}: out (${JSON.stringify(share)})`),
      Effect.sync(() => {
        for (const name of names) rooms.get(name)!.leave(guest)
      })
    )
  }

  const options = (): Lock.AcquireOptions => ({
    waitTime: [0, 300, 3000][between(random, 0, 2)]!,
    ...(random() < 0.3 ? { leaseTime: between(random, 100, leaseMillis) } : {})
  })

  /** What is protected: not while the section waits for a lock that it takes, renews or gives back within. */
  const work = (guest: Guest, millis: number, token?: bigint) =>
    Effect.acquireUseRelease(
      enter(guest, token),
      () => Effect.sleep(millis),
      () => leave(guest)
    )

  const stay = (side: Side, owner: symbol, isInner: boolean, granted: Granted): Effect.Effect<void, Failure, Client> =>
    Effect.gen(function* () {
      const guest: Guest = { side, owner }
      report.entered++
      yield* work(guest, between(random, 0, 300), isInner ? undefined : granted.token)
      const inner = isInner || random() < 0.7 ? undefined : within(side)
      if (inner !== undefined) {
        yield* Effect.ignore(inner.run((granted) => stay(inner, owner, true, granted), options()))
      }
      if (granted.renew !== undefined && random() < 0.2) {
        yield* Effect.ignore(granted.renew(random() < 0.3 ? undefined : between(random, 100, leaseMillis)))
      }
      yield* work(guest, random() < 0.2 ? between(random, 0, 2 * leaseMillis) : between(random, 0, 100))
    })

  /** A section, or two of one owner at once. */
  const visit = (side: Side): Effect.Effect<void, Failure, Client> => {
    const owner = Symbol()
    const other = random() < 0.2 ? within(side) : undefined
    return other === undefined
      ? side.run((granted) => stay(side, owner, false, granted), options())
      : Lock.withOwner(
          Effect.all(
            [side, other].map((side) => side.run((granted) => stay(side, owner, true, granted), options())),
            { concurrency: "unbounded", discard: true }
          )
        )
  }

  /** What may be taken by who has this already. */
  const within = (side: Side): Side | undefined => {
    const candidates = sides.filter(
      ({ isReentrant, names, share }) =>
        isReentrant && names[0] === side.names[0] && (side.share === "nobody" || share === side.share)
    )
    return candidates[between(random, 0, candidates.length - 1)]
  }

  const worker = Effect.gen(function* () {
    for (let i = 0; i < sectionsEach; i++) {
      yield* Effect.sleep(between(random, 0, 200))
      const side = sides[between(random, 0, sides.length - 1)]!
      const section = visit(side)
      const exit = yield* Effect.exit(
        random() < 0.15 ? Effect.timeoutOption(section, between(random, 1, 600)) : section
      )
      if (Exit.isSuccess(exit)) continue
      const failure = Exit.findErrorOption(exit)
      if (Option.isNone(failure)) return yield* exit
      if (failure.value._tag === "LockLost") report.lost++
      else report.refused++
    }
  })

  const chaos = yield* Effect.forkIn(mischief(servers, connections, forget, random), scope)
  const workers = yield* Effect.forEach(
    contexts.flatMap((context) => Arr.replicate(context, workersEach)),
    (context) => Effect.forkIn(Effect.provideContext(worker, context), scope)
  )
  yield* until(() => workers.every((fiber) => fiber.pollUnsafe() !== undefined), "the workers never end")
  for (const fiber of workers) yield* Fiber.join(fiber)

  yield* Fiber.interrupt(chaos)
  for (const connection of connections) connection.heal()
  for (const server of servers) yield* server.heal
  for (let passed = 0; passed < 2 * leaseMillis + 10 * commandTimeoutMillis; passed += tickMillis) yield* tick
  for (const context of contexts) {
    for (const service of [Context.get(context, RedisLock.RedisLock), ...Context.get(context, Members)]) {
      const { lines, permitLines, watchdog } = service as unknown as LockClient
      const left = { lines: lines.size, permitLines: permitLines.size, holdings: watchdog.size }
      if (Object.values(left).some((size) => size > 0)) return yield* fail(`left behind: ${JSON.stringify(left)}`)
    }
    for (const side of sides) {
      const free = yield* Effect.forkIn(
        Effect.provideContext(
          side.run(() => Effect.void, { waitTime: 0 }),
          context
        ),
        scope
      )
      yield* until(() => free.pollUnsafe() !== undefined, `"${side.names}" gives no answer`)
      const exit = yield* Fiber.await(free)
      if (Exit.isFailure(exit))
        return yield* fail(`"${side.names}" is not free in the end: ${Cause.pretty(exit.cause)}`)
    }
  }
  return report
}, Effect.scoped)

const client = Effect.fnUntraced(function* (connections: ReadonlyArray<Connection>) {
  const options = { watchdogLeaseTime: leaseMillis, fallbackInterval: 200, subscriptionIdleTime: 500 }
  const members = yield* Effect.forEach(connections, (connection) => clientOf(connection, options))
  const service =
    members.length === 1
      ? members[0]!
      : yield* serviceOf(RedisLock.layerQuorum(members.map((member) => Layer.succeed(RedisLock.RedisLock, member))))
  return Context.make(RedisLock.RedisLock, service).pipe(Context.add(Members, members))
})

/** Cuts connections, stops servers, and crashes them, one at a time. */
const mischief = Effect.fnUntraced(function* (
  servers: ReadonlyArray<Server>,
  connections: ReadonlyArray<Connection>,
  forget: boolean,
  random: Random
) {
  while (true) {
    yield* Effect.sleep(between(random, 50, 800))
    const connection = connections[between(random, 0, connections.length - 1)]!
    const server = servers[between(random, 0, servers.length - 1)]!
    switch (between(random, 0, 3)) {
      case 0: {
        connection.cut()
        yield* Effect.sleep(between(random, 1, 600))
        connection.isCut = false
        break
      }
      case 1: {
        connection.break()
        break
      }
      case 2: {
        yield* server.stop
        yield* Effect.sleep(between(random, 1, 2 * leaseMillis))
        yield* server.resume
        break
      }
      case 3: {
        const withData = !forget || random() < 0.5
        yield* server.crash
        // without its data it comes back later than any lease lasts, as the documentation asks for
        yield* Effect.sleep(withData ? between(random, 1, 500) : leaseMillis + 1)
        yield* server.restart(withData)
        break
      }
    }
  }
})
