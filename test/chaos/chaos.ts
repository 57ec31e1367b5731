/**
 * A chaos run: client processes enter sections under locks of one Redis, while their connections, the server and they
 * themselves fail as a seed decides; `judge.ts` says what must hold nevertheless.
 */
import { RedisServer } from "@effect-redis-lock/testing"
import { Deferred, Effect, type Scope, Semaphore } from "effect"
import { Redis } from "ioredis"
import { type ChildProcess, fork } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { type ClientEvent, type ClientSettings, finish, type Kind, lockOf, now } from "./events.ts"
import { type Judgement, judge, type Seen, type Told, type Violation } from "./judge.ts"
import { LateProxy } from "./LateProxy.ts"
import { isLasting } from "../kit/server/lastingKeys.ts"
import { describeFault, type Scheduled, scheduleOf } from "./schedule.ts"

export interface ChaosOptions {
  readonly seed: number
  /** For how long faults begin, milliseconds. */
  readonly millis: number
  /** A client that goes on when it has lost its lock: the run must find that out. Default: false. */
  readonly broken?: boolean
  /** Default: what the seed says. */
  readonly faults?: ReadonlyArray<Scheduled>
}

export interface ChaosReport extends Judgement {
  readonly faults: ReadonlyArray<Scheduled>
  /** On the clock of the violations. */
  readonly began: number
  /** All that happened, a line each, in the order of time. */
  readonly history: ReadonlyArray<{ readonly at: number; readonly line: string }>
}

const kinds: ReadonlyArray<Kind> = ["fair", "plain"]
const FIBERS = 2
/** A short lease for processes that are killed and stopped; a long one shows whoever takes a lock that nobody waits for. */
const MORTAL = [0, 1]
const IMMORTAL = [2, 3]
const SLOTS = MORTAL.length + IMMORTAL.length
const WATCHDOG_LEASE_MILLIS = 2000
const LONG_LEASE_MILLIS = 120_000
const PATIENCE_MILLIS = 5000
const LOOK_MILLIS = 50
/** After a cut a client counts as reached when it uses as many connections as before, and has had time for a command. */
const COMMAND_MILLIS = 300
const RECONNECT_MILLIS = 3000
/** How long the processes may take to close, and the server to be clean. */
const CLOSE_MILLIS = 15_000

/** The keys that remain, as documented: the last token of each name. */

interface Client {
  readonly process: number
  readonly slot: number
  readonly child: ChildProcess
  readonly ready: Deferred.Deferred<void>
  readonly gone: Deferred.Deferred<void>
  isStopped: boolean
  isKilled: boolean
  /** Whether it has entered a section last, and not left one. */
  inside: boolean
}

/** Runs it all; the report says what came of it. */
export const chaos = Effect.fnUntraced(function* (options: ChaosOptions) {
  const directory = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "chaos-"))),
    (directory) => Effect.sync(() => rmSync(directory, { recursive: true, force: true }))
  )
  const server = yield* RedisServer.start({
    args: ["--dir", directory, "--appendonly", "yes", "--appendfsync", "always", "--enable-debug-command", "yes"]
  })
  const look = yield* bare(server.url)
  const run = new Run(options, server, look)
  const proxies = yield* Effect.forEach(Array.from({ length: SLOTS }), (_, slot) =>
    LateProxy.make(server.port, (bytes) => run.note(`client ${slot}: late bytes arrive: ${wordsOf(bytes)}`))
  )
  for (const proxy of proxies) run.proxies.push(proxy)
  yield* Effect.addFinalizer(() => Effect.sync(() => run.killAll()))

  for (let slot = 0; slot < SLOTS; slot++) yield* run.start(slot)
  yield* Effect.forkScoped(run.look)
  const faults =
    options.faults ?? scheduleOf({ seed: options.seed, millis: options.millis, clients: SLOTS, mortal: MORTAL })
  const began = now()
  run.note(`the run begins: seed ${options.seed}, ${faults.length} faults`)
  yield* Effect.forEach(
    faults,
    (fault) =>
      Effect.andThen(
        until(began + fault.at),
        Effect.suspend(() => run.commit(fault))
      ),
    { concurrency: "unbounded", discard: true }
  )
  yield* until(began + options.millis)
  for (const proxy of proxies) proxy.deliverAll()
  yield* run.serves
  const calmSince = now()
  run.note("the last fault is over")
  const living = run.finish()

  const closed = yield* Effect.timeoutOption(
    Effect.forEach(living, ({ gone }) => Deferred.await(gone), { discard: true }),
    PATIENCE_MILLIS + CLOSE_MILLIS
  )
  const violations: Array<Violation> = []
  if (closed._tag === "None") {
    violations.push({
      at: now(),
      what: "not all client processes have ended, though every fiber has only one section to go"
    })
  } else violations.push(...(yield* run.leftovers))
  run.note("the run is over")

  const told = run.told.sort((a, b) => a.at - b.at)
  const seen = run.seen.sort((a, b) => a.at - b.at)
  const fibers = kinds.flatMap((kind) => Array.from({ length: FIBERS }, (_, i) => `${kind}-${i}`))
  const judgement = judge(told, seen, {
    calmSince,
    // a machine that stands still serves nobody
    patience: PATIENCE_MILLIS + run.stalledSince(calmSince),
    living: living.map(({ process }) => ({ process, fibers }))
  })
  const report: ChaosReport = {
    ...judgement,
    violations: [...run.violations, ...judgement.violations, ...violations].sort((a, b) => a.at - b.at),
    faults,
    began,
    history: run.history(began)
  }
  return report
}, Effect.scoped)

const until = (time: number) => Effect.suspend(() => Effect.sleep(Math.max(0, time - now())))

const bare = (url: string): Effect.Effect<Redis, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const redis = new Redis(url, { retryStrategy: () => 50, maxRetriesPerRequest: null, enableOfflineQueue: false })
      redis.on("error", () => {})
      return redis
    }),
    (redis) => Effect.sync(() => redis.disconnect())
  )

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

class Run {
  readonly told: Array<Told> = []
  readonly seen: Array<Seen> = []
  readonly violations: Array<Violation> = []
  readonly proxies: Array<LateProxy> = []
  readonly #notes: Array<{ readonly at: number; readonly line: string }> = []
  readonly #clients: Array<Client | undefined> = Array.from({ length: SLOTS })
  readonly #options: ChaosOptions
  readonly #server: RedisServer.RedisServer
  readonly #redis: Redis
  /** One fault of the server at a time. */
  readonly #serverFault = Semaphore.makeUnsafe(1)
  readonly #stalls: Array<{ readonly at: number; readonly millis: number }> = []
  #processes = 0

  constructor(options: ChaosOptions, server: RedisServer.RedisServer, redis: Redis) {
    this.#options = options
    this.#server = server
    this.#redis = redis
  }

  note(line: string): void {
    this.#notes.push({ at: now(), line })
  }

  /** Starts a client process in that slot, and waits until it is ready, or dead. */
  start(slot: number): Effect.Effect<void> {
    return Effect.suspend(() => {
      const process = this.#processes++
      const broken = this.#options.broken === true && slot === MORTAL[0]
      const settings: ClientSettings = {
        url: this.proxies[slot]!.url,
        kinds,
        fibers: FIBERS,
        work: broken ? 1000 : 15,
        longWork: 1500,
        pause: 20,
        watchdogLeaseTime: WATCHDOG_LEASE_MILLIS,
        leaseTime: MORTAL.includes(slot) ? undefined : LONG_LEASE_MILLIS,
        broken
      }
      const compiled = import.meta.url.endsWith(".ts") ? "../dist/chaos/client.js" : "client.js"
      const child = fork(fileURLToPath(new URL(compiled, import.meta.url)), [JSON.stringify(settings)], {
        stdio: ["ignore", "ignore", "pipe", "ipc"],
        execArgv: []
      })
      const client: Client = {
        process,
        slot,
        child,
        ready: Deferred.makeUnsafe(),
        gone: Deferred.makeUnsafe(),
        isStopped: false,
        isKilled: false,
        inside: false
      }
      this.#clients[slot] = client
      let errors = ""
      child.stderr!.setEncoding("utf8").on("data", (text: string) => (errors += text))
      child.on("message", (message) => {
        const event = message as ClientEvent
        this.told.push({ ...event, process })
        if (event.event === "enters") client.inside = true
        else if (event.event === "leaves" || event.event === "ended") client.inside = false
        if (event.event === "ready") Deferred.doneUnsafe(client.ready, Effect.void)
      })
      child.on("close", (code, signal) => {
        if (!client.isKilled && code !== 0) {
          this.violations.push({ at: now(), what: `process ${process} ended with ${code ?? signal}: ${errors.trim()}` })
        }
        Deferred.doneUnsafe(client.ready, Effect.void)
        Deferred.doneUnsafe(client.gone, Effect.void)
      })
      this.note(`client ${slot} is process ${process}`)
      return Deferred.await(client.ready)
    })
  }

  commit(fault: Scheduled): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      if (fault.fault === "restart" || fault.fault === "sleep" || fault.fault === "pause") {
        return yield* Effect.flatten(this.#serverFault.withPermit(this.#commitOnServer(fault)))
      }
      this.note(describeFault(fault))
      const { client: slot } = fault
      const client = this.#clients[slot]!
      const proxy = this.proxies[slot]!
      const cutOff = (at: number) => this.seen.push({ event: "cutOff", at, process: client.process })
      const reached = () => this.seen.push({ event: "reached", at: now() + COMMAND_MILLIS, process: client.process })
      const before = proxy.inUse
      const reconnects = Effect.gen(function* () {
        const until = now() + RECONNECT_MILLIS
        while (proxy.inUse < before && now() < until) yield* Effect.sleep(10)
        reached()
      })
      switch (fault.fault) {
        case "late": {
          cutOff(now())
          const breakLate = proxy.hold()
          yield* Effect.sleep(fault.holds)
          // what is late for longer than the run is delivered at its end
          breakLate(fault.late)
          return yield* reconnects
        }
        case "cut":
          cutOff(now())
          proxy.cut()
          return yield* reconnects
        case "silence": {
          cutOff(now())
          const speak = proxy.silence()
          yield* Effect.sleep(fault.lasts)
          speak()
          return yield* reconnects
        }
        case "kill":
          if (client.isKilled) return
          client.isKilled = true
          client.child.kill("SIGKILL")
          yield* Deferred.await(client.gone)
          this.seen.push({ event: "killed", at: now(), process: client.process })
          yield* Effect.sleep(fault.back)
          return yield* this.start(slot)
        case "stop":
          while (true) {
            while (fault.inside === true && !client.inside) yield* Effect.sleep(1)
            if (client.isKilled || client.isStopped) return
            client.isStopped = true
            this.seen.push({ event: "stopped", at: now(), process: client.process })
            client.child.kill("SIGSTOP")
            // until then, what it has said before arrives: it may have left when the signal came
            yield* Effect.sleep(Math.min(100, fault.lasts))
            const isMissed = fault.inside === true && !client.inside
            if (!isMissed) yield* Effect.sleep(Math.max(0, fault.lasts - 100))
            client.child.kill("SIGCONT")
            client.isStopped = false
            this.seen.push({ event: "continued", at: now(), process: client.process })
            if (!isMissed) return
          }
      }
    })
  }

  /**
   * A client whose connections came back late, though the server answered others, was cut off in between: by the machine. Until
   * the server answers anybody, nobody is.
   */
  #comeBack(
    killedAt: number,
    clients: ReadonlyArray<Client | undefined>,
    before: ReadonlyArray<number>
  ): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      const until = now() + RECONNECT_MILLIS
      const answers = () => this.proxies.map((proxy) => proxy.answeredAfter(killedAt))
      while (answers().some(({ length }, slot) => length < before[slot]!) && now() < until) yield* Effect.sleep(10)
      const servesAt = Math.min(...answers().flat(), now())
      for (const [slot, times] of answers().entries()) {
        const client = clients[slot]
        if (client === undefined || before[slot] === 0) continue
        const { process } = client
        const reachedAt = times[before[slot]! - 1] ?? now()
        this.seen.push({ event: "cutOff", at: servesAt, process })
        this.seen.push({ event: "reached", at: reachedAt + COMMAND_MILLIS, process })
      }
    })
  }

  /** What remains to be seen afterwards, while another fault may begin. */
  #commitOnServer(fault: Scheduled): Effect.Effect<Effect.Effect<void>> {
    return Effect.gen({ self: this }, function* () {
      this.note(describeFault(fault))
      const clients = [...this.#clients]
      const before = this.proxies.map(({ inUse }) => inUse)
      const at = now()
      if (fault.fault === "restart") {
        yield* this.#server.kill
        yield* Effect.sleep(fault.down)
        yield* this.#server.restart
      } else if (fault.fault === "sleep") {
        yield* Effect.promise(() => this.#redis.call("DEBUG", "SLEEP", fault.lasts / 1000).catch(() => {}))
      } else if (fault.fault === "pause") {
        yield* this.#server.pause
        yield* Effect.sleep(fault.lasts)
        yield* this.#server.resume
      }
      yield* this.serves
      this.note("server: it serves again")
      return fault.fault === "restart" ? this.#comeBack(at, clients, before) : Effect.void
    }).pipe(Effect.orDie)
  }

  /** Waits until the server answers. */
  readonly serves: Effect.Effect<void> = Effect.promise(async () => {
    while ((await this.#redis.ping().catch(() => "")) !== "PONG")
      await new Promise((resolve) => setTimeout(resolve, 20))
  })

  /** Looks at the queue and the holders again and again, past all proxies. */
  readonly look: Effect.Effect<void> = Effect.promise(async () => {
    let last = ""
    let ticked = now()
    while (true) {
      const holders = kinds.map((kind) => lockOf(kind))
      const view = await Promise.all([
        this.#redis.lrange(`redisson_lock_queue:{${lockOf("fair")}}`, 0, -1),
        ...holders.map((key) => this.#redis.hkeys(key))
      ]).catch(() => undefined)
      const at = now()
      if (view !== undefined && JSON.stringify(view) !== last) {
        last = JSON.stringify(view)
        const [owners, ...held] = view
        this.seen.push({ event: "queue", at, owners })
        const shown = kinds.map((kind, i) => `${kind}: ${held[i]!.join(", ") || "free"}`).join("; ")
        this.#notes.push({ at, line: `server: ${shown}; queue: ${owners.join(", ") || "empty"}` })
      }
      await new Promise((resolve) => setTimeout(resolve, LOOK_MILLIS))
      const millis = now() - ticked - LOOK_MILLIS
      if (millis > LOOK_MILLIS) this.#stalls.push({ at: now(), millis })
      ticked = now()
    }
  })

  /** For how long the machine had no time for us, or one of the clients, since then. */
  stalledSince(time: number): number {
    const ours = this.#stalls.filter(({ at }) => at > time).reduce((sum, { millis }) => sum + millis, 0)
    const theirs = new Map<number, number>()
    for (const event of this.told) {
      if (event.event !== "stalled" || event.at < time) continue
      theirs.set(event.process, (theirs.get(event.process) ?? 0) + event.at - Math.max(event.since, time))
    }
    return ours + Math.max(0, ...theirs.values())
  }

  /** Tells all that each fiber has one section to go. */
  finish(): ReadonlyArray<Client> {
    const living = this.#clients.filter((client) => client !== undefined)
    for (const { child } of living) if (child.connected) child.send(finish)
    return living
  }

  /** What is left on the server but should not. */
  readonly leftovers: Effect.Effect<ReadonlyArray<Violation>> = Effect.promise(async () => {
    const until = now() + CLOSE_MILLIS
    let left: ReadonlyArray<string>
    do {
      left = (await this.#redis.keys("*")).filter((key) => !isLasting(key))
      // when others had their turn of a lock is forgotten after a minute
      const noPlaces = await Promise.all(
        left.map(
          async (key) => key.includes("lock_places:") && (await this.#redis.zrange(key, "0", "-1")).join() === ""
        )
      )
      left = left.filter((_, i) => noPlaces[i] !== true)
      if (left.length > 0) await new Promise((resolve) => setTimeout(resolve, 100))
    } while (left.length > 0 && now() < until)
    return Promise.all(
      left.map(async (key) => ({
        at: now(),
        what: `left in Redis: ${key} (${await this.#redis.type(key)}, ${await this.#redis.pttl(key)} ms to live)`
      }))
    )
  })

  killAll(): void {
    for (const client of this.#clients) {
      if (client === undefined) continue
      client.isKilled = true
      client.child.kill("SIGKILL")
    }
  }

  history(began: number): ChaosReport["history"] {
    const shown = (event: Told): string => {
      const who = `process ${event.process}`
      switch (event.event) {
        case "ready":
          return `${who} is ready: client ${event.clientId}`
        case "asks":
          return `${who}, ${event.fiber}: asks`
        case "ended":
          return `${who}, ${event.fiber}: its section ended: ${event.outcome}`
        case "stalled":
          return `${who}: did not run for ${(event.at - event.since).toFixed(0)} ms`
        case "closed":
          return `${who}: closed`
        case "broke":
          return `${who}: ${event.why}`
        default:
          return `${who}, ${event.fiber}: ${event.event} as ${event.owner}, token ${event.token}, for at most ${(event.until - event.at).toFixed(0)} ms more`
      }
    }
    const seen = this.seen.flatMap((event) =>
      event.event === "queue" ? [] : [{ at: event.at, line: `process ${event.process}: ${event.event}` }]
    )
    return [
      ...this.#notes,
      ...seen,
      ...this.told.filter(({ event }) => event !== "stays").map((event) => ({ at: event.at, line: shown(event) }))
    ]
      .sort((a, b) => a.at - b.at)
      .map(({ at, line }) => ({ at: at - began, line }))
  }
}
