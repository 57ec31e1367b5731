/**
 * `node test/dist/simulation/trace.js [seed]`: three processes that take turns on a `Lock`, on one server, over a network that loses and
 * delays what is sent, in virtual time. Prints what they have sent, what the server did and what they have read, as JSON; `pnpm spec` checks
 * that spec/lock.qnt allows it, see spec/lockTrace.qnt.
 */
import { randomOf } from "@effect-redis-lock/playground/VirtualTime"
import { Cause, Effect, Exit, Queue, Stream } from "effect"
import { Lock, type LockStore, RedisDriver } from "effect-redis-lock"
import { as, clientOf } from "../kit/testStore.ts"
import type { Store } from "../kit/wrappedStore.ts"
import { decidedBy } from "./decidedBy.ts"
import { execute, makeDatabase, type Result, sending, ServerClocks } from "./memory.ts"
import { VirtualTime } from "./virtualTime.ts"

const name = "ledger"
const keys = { token: "redisson_lock_token:{ledger}", places: "effect_redis_lock_places:{ledger}" }
const processes = [1, 2, 3]
const sectionsEach = 8
/** Those of processes.qnt: LEASE and LIFE. */
const [leaseMillis, lifeMillis] = [8000, 1000]

/** Of the specification: what becomes of each command. */
const operations: Partial<Record<LockStore.Operation, "acquire" | "release" | "renew">> = {
  "lock/acquire": "acquire",
  "lock/release": "release",
  "lock/renew": "renew"
}

/** Times are microseconds since the run began, owners are numbered as they appear; 0 is nobody. */
interface Event {
  readonly is: "sends" | "arrives" | "reads"
  readonly at: number
  readonly process: number
  readonly command: number
  readonly op: string
  readonly owner: number
  readonly hasAsked: boolean
  readonly deadline: number
  readonly reply: string
  readonly told: ReadonlyArray<{ readonly owner: number; readonly token: number; readonly time: number }>
  /** How many places were passed over because their clients did not listen. */
  readonly deaf: number
  readonly holder: number
  readonly leftMillis: number
  readonly lastToken: number
  readonly places: ReadonlyArray<number>
}

const play = (seed: number): ReadonlyArray<Event> => {
  const time = new VirtualTime(Date.UTC(2026, 0))
  const random = randomOf(seed)
  const events: Array<Event> = []
  const db = makeDatabase(() => time.now)
  const since = (micros: number) => micros - time.start * 1000
  let commands = 0
  const owners: Array<string> = []
  const numberOf = (owner: string) => (owners.includes(owner) ? owners.indexOf(owner) : owners.push(owner) - 1) + 1
  let heard: Array<Event["told"][number]> = []

  const inspect = () => {
    const [holder] = db.get(name, "hash")?.keys() ?? []
    const token = db.get(keys.token, "string")
    const places = [...(db.get(keys.places, "zset") ?? [])].filter(([owner]) => owner !== "")
    return {
      holder: holder === undefined ? 0 : numberOf(holder),
      leftMillis: db.pttl(name),
      lastToken: token === undefined ? -1 : since(Number(token)),
      places: places.sort(([, a], [, b]) => a - b).map(([owner]) => numberOf(owner))
    }
  }

  /** Mostly fast; one in twenty is on its way for seconds. No two arrive at the same time. */
  const latency = () => random() * (random() < 0.05 ? 3000 : 10)

  const wordFor = (op: Event["op"], result: Result): string => {
    if (Exit.isFailure(result)) return /LATE \d/.test(Cause.pretty(result.cause)) ? "late" : "error"
    const { value } = result
    if (op === "acquire")
      return typeof value === "number" || (value as ReadonlyArray<unknown>)[0] === "granted" ? "granted" : "denied"
    if (op === "release") return (value as number) >= 1 ? "released" : "not held"
    return (value as ReadonlyArray<number>)[0] === 1 ? "extended" : "not held"
  }

  const send = (
    process: number,
    operation: LockStore.Operation,
    names: ReadonlyArray<string>,
    args: ReadonlyArray<string | number>,
    onExit: (result: Result) => void
  ): (() => void) => {
    const op = operations[operation]
    if (op === undefined) {
      // what an operator is told; nobody's lock depends on it
      onExit(execute(db, operation, names, args))
      return () => {}
    }
    const command = ++commands
    const note = (is: Event["is"], more: Partial<Event> = {}) =>
      events.push({
        is,
        at: since(db.timeMicros()),
        process,
        command,
        op,
        owner: numberOf(String(args[op === "renew" ? 1 : 0])),
        hasAsked: op === "acquire" && Number(args[4]) === 1,
        deadline: op === "acquire" ? Math.max(0, since(Number(args.at(-1)) * 1000)) : 0,
        reply: "",
        told: [],
        deaf: 0,
        holder: 0,
        leftMillis: 0,
        lastToken: 0,
        places: [],
        ...more
      })
    const arrive = () => {
      const before = inspect()
      heard = []
      const result = execute(db, operation, names, args)
      const server = inspect()
      const told = heard
      const kept = (owner: number) => server.places.includes(owner) || told.some((message) => message.owner === owner)
      const gone = before.places.filter((owner) => owner !== numberOf(String(args[0])) && !kept(owner))
      note("arrives", { reply: wordFor(op, result), told, deaf: op === "release" ? gone.length : 0, ...server })
      if (random() < 0.03) return
      time.after(latency(), () => {
        if (!isAwaited) return
        note("reads")
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
    const cancelTimeout = time.after(lifeMillis, () =>
      end(Exit.fail(new RedisDriver.RedisDriverError({ reason: "TimedOut", cause: new Error("the network") })))
    )
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
        eval: ({ name }, names, args) =>
          Effect.callback<RedisDriver.Reply, RedisDriver.RedisDriverError>((resume) => {
            const giveUp = send(process, name as LockStore.Operation, names, args, resume)
            return Effect.sync(giveUp)
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
              time.after(latency(), () => void Queue.offerUnsafe(signals, { _tag: "Subscribed" }))
              return db.listen(channel, (message) => {
                const [, secret, token, micros] = message.split(" ")
                if (token !== undefined) {
                  const owner = numberOf(`${channel.slice(channel.lastIndexOf(":") + 1)}:${secret}`)
                  heard.push({ owner, token: since(Number(token)), time: since(Number(micros)) })
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

  const lock = Lock.make(name)
  const worker = (process: number) =>
    Effect.gen(function* () {
      const client = yield* clientOf({ store: storeOf(process) }, { watchdogLeaseTime: leaseMillis })
      for (let section = 0; section < sectionsEach; section++) {
        yield* Effect.sleep(random() * 1000)
        const work = Effect.sleep(random() * (random() < 0.15 ? 12_000 : 1500))
        const locked = Lock.withLock(lock, { waitTime: random() < 0.2 ? 500 : 20_000 })(work)
        yield* Effect.ignore(as(client)(random() < 0.2 ? Effect.timeoutOption(locked, random() * 3000) : locked))
      }
      // what goes on in the background
      yield* Effect.sleep(20_000)
    })
  const exit = time.run(Effect.scoped(Effect.forEach(processes, worker, { concurrency: "unbounded" })))
  if (Exit.isFailure(exit)) throw Cause.squash(exit.cause)
  return events
}

const seed = Number(process.argv[2] ?? 1)
console.log(JSON.stringify(decidedBy(seed, () => play(seed))))
