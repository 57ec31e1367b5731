/**
 * `node test/dist/simulation/trace.js <kind> [seed]`: three processes that take turns on a lock of that kind, or on permits, on one server, over a
 * network that loses and delays what is sent, in virtual time. Prints what they have sent, what the server did and what they have read, as
 * JSON; `pnpm spec` checks that the specification of that name allows it, see spec/trace.qnt.
 */
import { randomOf } from "@effect-redis-lock/playground/VirtualTime"
import { Cause, Effect, Exit, Queue, Stream } from "effect"
import {
  FairLock,
  Lock,
  type LockStore,
  PermitSemaphore,
  ReadWriteLock,
  RedisDriver,
  type RedisLock
} from "effect-redis-lock"
import { as, clientOf } from "../kit/testStore.ts"
import type { Store } from "../kit/wrappedStore.ts"
import { decidedBy } from "./decidedBy.ts"
import { type Database, execute, makeDatabase, type Result, sending, ServerClocks } from "./memory.ts"
import { VirtualTime } from "./virtualTime.ts"

const name = "ledger"
const processes = [1, 2, 3]
const sectionsEach = 8
const permits = 2
/** Those of processes.qnt: LEASE and LIFE. */
const [leaseMillis, lifeMillis] = [8000, 1000]

/** Times are microseconds since the run began, owners are numbered as they appear; 0 is nobody. */
interface Event extends Required<Command> {
  readonly is: "sends" | "arrives" | "reads" | "fails"
  readonly at: number
  readonly process: number
  readonly command: number
  readonly reply: string
  readonly told: ReadonlyArray<{ readonly owner: number; readonly token: number; readonly time: number }>
  /** The processes that would not hear if they were told. */
  readonly deaf: ReadonlyArray<number>
  /** What is in Redis then, as the specification's trace module reads it. */
  readonly server: ReadonlyArray<number>
}

/** What the specification knows of a command. */
interface Command {
  readonly op: "acquire" | "release" | "renew" | "leave" | "refresh"
  readonly owner: number
  readonly wants?: string
  /** Whether its owner has asked before; of permits, whether its fiber waits; of a fair lock's report, whether anybody of its client does. */
  readonly hasAsked?: boolean
  readonly waited?: number
  /** How old its place is. */
  readonly age?: number
  readonly deadline?: number
  /** Owners whose places a fair lock's report removes. */
  readonly gone?: ReadonlyArray<number>
}

type Args = ReadonlyArray<string | number>

/** What a run knows. */
interface Run {
  readonly db: Database
  readonly since: (micros: number) => number
  /** The number of an owner. */
  readonly owner: (id: unknown) => number
  /** The process of a client or an owner; undefined before its first command. */
  readonly processOf: (id: string) => number | undefined
}

type WithRedis<A, E> = Effect.Effect<A, E, RedisLock.RedisLock>

interface Kind {
  /** What an operation is in the specification; others, such as what an operator is told, are nobody's lock. */
  readonly commands: Partial<Record<LockStore.Operation, (args: Args, run: Run) => Command>>
  readonly inspect: (run: Run) => ReadonlyArray<number>
  /** Its channel; each client, or each owner that `waits`, hears on its own. */
  readonly channel: string
  readonly waits?: (db: Database) => ReadonlyArray<string>
  readonly within: (
    random: () => number,
    waitTime: number
  ) => (work: Effect.Effect<void>) => WithRedis<unknown, unknown>
}

const zset = (db: Database, key: string): ReadonlyArray<readonly [member: string, score: number]> =>
  [...(db.get(key, "zset") ?? [])].sort(([a, x], [b, y]) => x - y || (a < b ? -1 : 1))

const tokenOf = ({ db, since }: Run): number => {
  const token = db.get(`redisson_lock_token:{${name}}`, "string")
  return token === undefined ? -1 : since(Number(token))
}

/** The owners that have places; what has this added to its score is none. */
const placesOf = ({ db, owner }: Run): ReadonlyArray<number> =>
  zset(db, `effect_redis_lock_places:{${name}}`)
    .filter(([field, score]) => field !== "" && score < 4e15)
    .map(([field]) => owner(field.replace(/:write$/, "")))

const holderOf = ({ db, owner }: Run): ReadonlyArray<number> => {
  const [holder] = db.get(name, "hash")?.keys() ?? []
  return [holder === undefined ? 0 : owner(holder), db.pttl(name)]
}

const queueOf = (db: Database): ReadonlyArray<string> => db.get(`redisson_lock_queue:{${name}}`, "list") ?? []

const releases = (args: Args, { owner }: Run): Command => ({ op: "release", owner: owner(args[0]) })
const renews = (args: Args, { owner }: Run): Command => ({
  op: "renew",
  owner: owner(String(args[1]).replace(/:write$/, ""))
})
const deadlineOf = (args: Args, { since }: Run): number => Math.max(0, since(Number(args.at(-1)) * 1000))

/** The 16 bytes of a permit's id. */
const idOf = (bytes: string): string =>
  [...bytes].map((byte) => byte.charCodeAt(0).toString(16).padStart(2, "0")).join("")

const kinds: Record<string, Kind> = {
  lock: {
    commands: {
      "lock/acquire": (args, run) => ({
        op: "acquire",
        owner: run.owner(args[0]),
        hasAsked: Number(args[4]) === 1,
        // a first request says nothing of its place
        age: args.length === 7 ? Number(args[5]) : 0,
        deadline: deadlineOf(args, run)
      }),
      "lock/release": releases,
      "lock/renew": renews
    },
    inspect: (run) => [...holderOf(run), tokenOf(run), ...placesOf(run)],
    channel: `redisson_lock__channel:{${name}}`,
    within: (_, waitTime) => Lock.withLock(Lock.make(name), { waitTime })
  },
  readWrite: {
    commands: {
      "read_lock/acquire": (args, run) => ({
        op: "acquire",
        owner: run.owner(args[0]),
        wants: "read",
        hasAsked: Number(args[5]) === 1,
        waited: Number(args[4]),
        age: Number(args[6]),
        deadline: deadlineOf(args, run)
      }),
      "read_lock/release": releases,
      "read_lock/renew": renews,
      "write_lock/acquire": (args, run) => ({
        op: "acquire",
        owner: run.owner(args[0]),
        wants: "write",
        hasAsked: Number(args[5]) === 1,
        age: Number(args[6]),
        deadline: deadlineOf(args, run)
      }),
      "write_lock/release": releases,
      "lock/renew": renews
    },
    inspect: (run) => {
      const { db, owner } = run
      const fields = [...(db.get(name, "hash")?.keys() ?? [])].filter((field) => field !== "mode")
      const writer = fields.find((field) => field.endsWith(":write"))
      const readers = fields.filter((field) => field !== writer)
      const holds = readers.flatMap((reader) => [
        owner(reader),
        Math.max(0, db.pttl(`{${name}}:${reader}:rwlock_timeout:1`))
      ])
      return [
        ...[writer === undefined ? 0 : owner(writer.replace(/:write$/, "")), db.pttl(name), tokenOf(run)],
        ...[readers.length, ...holds],
        ...placesOf(run)
      ]
    },
    channel: `redisson_rwlock:{${name}}`,
    within: (random, waitTime) => {
      const { readLock, writeLock } = ReadWriteLock.make(name)
      return Lock.withLock(random() < 0.6 ? readLock : writeLock, { waitTime })
    }
  },
  permits: {
    commands: {
      "permit_semaphore/acquire": (args, run) => ({
        op: "acquire",
        owner: run.owner(args.slice(9, -1).join(",")),
        wants: args.length === 11 ? "one" : "all",
        hasAsked: Number(args[8]) === 0,
        waited: Number(args[5]) * 1000,
        deadline: deadlineOf(args, run)
      }),
      "permit_semaphore/release": (args, { owner }) => ({ op: "release", owner: owner(args.slice(1).join(",")) }),
      "permit_semaphore/renew": renews,
      "semaphore/leave": () => ({ op: "leave", owner: 0 })
    },
    inspect: ({ db, owner, processOf }) => {
      const free = db.get(name, "string")
      const held = new Map<string, [left: number, permits: number]>()
      for (const [bytes, until] of zset(db, `{${name}}:timeout`)) {
        const left = until - Math.floor(db.timeMicros() / 1000)
        const key = String(owner(idOf(bytes)))
        if (left > 0) held.set(key, [left, (held.get(key)?.[1] ?? 0) + 1])
      }
      return [
        ...[Number(free !== undefined), Number(free ?? 0)],
        ...[held.size, ...[...held].flatMap(([key, its]) => [Number(key), ...its])],
        ...zset(db, `effect_redis_lock_permit_places:{${name}}`).map(([client]) => processOf(client)!)
      ]
    },
    channel: `redisson_sc:{${name}}`,
    within: (random, waitTime) => {
      const semaphore = PermitSemaphore.make(name, { permits })
      return (work) => PermitSemaphore.withPermits(work, semaphore, random() < 0.6 ? 1 : permits, { waitTime })
    }
  },
  fairQueue: {
    commands: {
      "fair_lock/acquire": (args, run) => ({
        op: "acquire",
        owner: run.owner(args[0]),
        deadline: deadlineOf(args, run)
      }),
      "fair_lock/release": releases,
      "lock/renew": renews,
      "fair_lock/refresh": (args, run) => {
        const owners = args.slice(6, -1).map(run.owner)
        const [owner = 0] = owners.splice(0, Number(args[5]))
        return { op: "refresh", owner, hasAsked: args[3] !== 0, deadline: deadlineOf(args, run), gone: owners }
      }
    },
    inspect: (run) => [...holderOf(run), tokenOf(run), ...queueOf(run.db).map(run.owner)],
    channel: `redisson_lock__channel:{${name}}`,
    waits: queueOf,
    within: (_, waitTime) => Lock.withLock(FairLock.make(name), { waitTime })
  }
}

/** A reply in the words of the specification. */
const wordFor = (op: Command["op"], owner: unknown, result: Result): string => {
  if (Exit.isFailure(result)) return /LATE \d/.test(Cause.pretty(result.cause)) ? "late" : "error"
  const { value } = result
  const first = Array.isArray(value) ? value[0] : value
  if (op === "acquire") {
    const hasPermits = first === 1 && typeof (value as ReadonlyArray<unknown>)[1] === "number"
    return !Array.isArray(value) || first === "granted" || hasPermits ? "granted" : "denied"
  }
  if (op === "release") return first >= 1 ? "released" : "not held"
  if (op === "leave") return first === 1 ? "left" : "no place"
  if (op === "renew") return first === 1 ? "extended" : "not held"
  const [left, head, , holder] = value as ReadonlyArray<unknown>
  return owner !== undefined && (holder === owner || (left === -2 && head === owner)) ? "turn" : "wait"
}

const play = (kind: Kind, seed: number): ReadonlyArray<Event> => {
  const time = new VirtualTime(Date.UTC(2026, 0))
  const random = randomOf(seed)
  const events: Array<Event> = []
  const db = makeDatabase(() => time.now)
  const owners: Array<string> = []
  const processOf = new Map<string, number>()
  let commands = 0
  let heard: Array<Event["told"][number]> = []
  const run: Run = {
    db,
    since: (micros) => micros - time.start * 1000,
    owner: (id) => {
      // ids of permits are of whoever has asked for them
      const at = owners.findIndex((known) =>
        known.split(",").includes(String(id).slice(0, known.includes(",") ? 32 : undefined))
      )
      return (at >= 0 ? at : owners.push(String(id)) - 1) + 1
    },
    processOf: (id) => processOf.get(id.slice(0, 36))
  }

  /** Mostly fast; one in twenty is on its way for seconds. No two arrive at the same time. */
  const latency = () => random() * (random() < 0.05 ? 3000 : 10)

  /** The processes that have a place, or may have one, and would not hear. */
  const deaf = (): ReadonlyArray<number> =>
    (kind.waits === undefined ? [...processOf.keys()] : kind.waits(db).slice(0, 1))
      .filter((whose) => db.listeners(`${kind.channel}:${whose}`) === 0)
      .map((whose) => run.processOf(whose)!)

  const send = (
    process: number,
    operation: LockStore.Operation,
    names: ReadonlyArray<string>,
    args: Args,
    onExit: (result: Result) => void
  ): (() => void) => {
    const sent = kind.commands[operation]?.(args, run)
    if (sent === undefined) {
      // what an operator is told; nobody's lock depends on it
      onExit(execute(db, operation, names, args))
      return () => {}
    }
    const command = ++commands
    const note = (is: Event["is"], more: Partial<Event> = {}) =>
      events.push({
        ...{ is, at: run.since(db.timeMicros()), process, command },
        ...{ wants: "", hasAsked: false, waited: 0, age: 0, deadline: 0, gone: [], ...sent },
        ...{ reply: "", told: [], deaf: [], server: [], ...more }
      })
    let reply = ""
    const arrive = () => {
      heard = []
      const result = execute(db, operation, names, args)
      reply = wordFor(sent.op, sent.owner === 0 ? undefined : owners[sent.owner - 1], result)
      const told = heard
      note("arrives", {
        reply,
        told,
        deaf: kind.waits !== undefined && told.length > 0 ? [] : deaf(),
        server: kind.inspect(run)
      })
      if (random() < 0.03) return
      time.after(latency(), () => {
        if (!isAwaited) return
        note("reads", { reply })
        end(result)
      })
    }
    let isAwaited = true
    const giveUp = () => {
      isAwaited = false
      cancelTimeout()
    }
    const end = (result: Result) => {
      giveUp()
      onExit(result)
    }
    const cancelTimeout = time.after(lifeMillis, () => {
      note("fails")
      end(Exit.fail(new RedisDriver.RedisDriverError({ reason: "TimedOut", cause: new Error("the network") })))
    })
    note("sends")
    if (random() >= 0.03) time.after(latency(), arrive)
    return giveUp
  }

  const storeOf = (process: number): Store => {
    const clocks = new ServerClocks(
      () => time.now - time.start,
      () => ""
    )
    return {
      run: sending({
        eval: ({ name }, names, args, onExit) => ({
          cancel: send(process, name as LockStore.Operation, names, args, onExit)
        }),
        clocks,
        lifeMillis
      }),
      commandLifeMillis: lifeMillis,
      commandTimeoutMillis: lifeMillis,
      serverMicros: (key) => clocks.latestMicros(key),
      longestSince: (key, serverMicros) => clocks.of(key).longestSince(serverMicros, clocks.now()),
      reconnects: Stream.never,
      handsOver: true,
      subscribe: (channel) =>
        Stream.callback((signals) =>
          Effect.acquireRelease(
            Effect.sync(() => {
              const whose = channel.slice(kind.channel.length + 1)
              time.after(latency(), () => void Queue.offerUnsafe(signals, { _tag: "Subscribed" }))
              return db.listen(channel, (message) => {
                const [, secret, token, micros] = message.split(" ")
                if (token !== undefined) {
                  const owner = run.owner(whose.length > 36 ? whose : `${whose}:${secret}`)
                  heard.push({ owner, token: run.since(Number(token)), time: run.since(Number(micros)) })
                } else if (kind === kinds.permits && processOf.has(whose)) {
                  // that permits are free
                  heard.push({ owner: process, token: 0, time: 0 })
                }
                if (random() < 0.1) return
                time.after(latency(), () => void Queue.offerUnsafe(signals, { _tag: "Message", message }))
              })
            }),
            (stop) => Effect.sync(stop)
          )
        ),
      scan: () => Stream.empty,
      publish: "PUBLISH",
      slot: () => 0
    }
  }

  const worker = (process: number) =>
    Effect.gen(function* () {
      const client = yield* clientOf({ store: storeOf(process) }, { watchdogLeaseTime: leaseMillis })
      processOf.set(client.clientId, process)
      for (let section = 0; section < sectionsEach; section++) {
        yield* Effect.sleep(random() * 1000)
        const work = Effect.sleep(random() * (random() < 0.15 ? 12_000 : 1500))
        const locked = kind.within(random, random() < 0.2 ? 500 : 20_000)(work)
        yield* Effect.ignore(as(client)(random() < 0.2 ? Effect.timeoutOption(locked, random() * 3000) : locked))
      }
      // what goes on in the background
      yield* Effect.sleep(20_000)
    })
  const exit = time.run(Effect.scoped(Effect.forEach(processes, worker, { concurrency: "unbounded" })))
  if (Exit.isFailure(exit)) throw Cause.squash(exit.cause)
  return events
}

const [kind = "", seed = 1] = process.argv.slice(2)
if (!Object.hasOwn(kinds, kind)) throw new Error(`no kind ${kind}: ${Object.keys(kinds).join(", ")}`)
console.log(JSON.stringify(decidedBy(Number(seed), () => play(kinds[kind]!, Number(seed)))))
