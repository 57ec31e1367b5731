/**
 * The client processes of a run, what they tell, and what happens to them and their connections.
 */
import { redisson } from "@effect-redis-lock/bench/candidates/catalog"
import { Deferred, Effect } from "effect"
import { type ChildProcess, fork } from "node:child_process"
import { fileURLToPath } from "node:url"
import { type ClientEvent, type ClientSettings, now, type Order, type Told } from "./events.ts"
import type { Healed, Seen, Violation } from "./judge.ts"
import type { Fault, OnConnections, OnProcess } from "./nemeses.ts"
import type { Way } from "./sites.ts"

const FIBERS = 2
/** A short lease for processes that are killed and stopped; a long one shows whoever takes a lock that nobody waits for. */
export const mortal: ReadonlyArray<number> = [0, 1]
export const slots = 4
const LEASE_MILLIS = 2000
const LONG_LEASE_MILLIS = 120_000
/** Such a library runs in a process that its client starts: what is done to a client is done to both. */
const isProgram = (library: string | undefined) => library === redisson
/** After a cut a client counts as reached when it uses as many connections as before, and has had time for a command. */
const COMMAND_MILLIS = 300
const RECONNECT_MILLIS = 3000

interface Client {
  readonly process: number
  readonly child: ChildProcess
  readonly ready: Deferred.Deferred<void>
  readonly gone: Deferred.Deferred<void>
  isStopped: boolean
  isKilled: boolean
  /** Whether it has entered a section last, and not left one. */
  inside: boolean
  /** When it last entered one. */
  enteredAt: number
}

/** What all client processes of a run have in common. */
type CommonSettings = Pick<ClientSettings, "acknowledge" | "fenced" | "kinds" | "library" | "register" | "server"> & {
  readonly steady: boolean
}

/** Milliseconds. Steady sections are all short: a long one would hide that nobody gets in. */
const usualLoad = { work: 15, longWork: 1500, pause: 20, watchdogLeaseTime: LEASE_MILLIS }
const steadyLoad = { work: 15, longWork: 15, pause: 100 }

export class Clients {
  readonly told: Array<Told> = []
  readonly seen: Array<Extract<Seen, { readonly process: number }>> = []
  readonly violations: Array<Violation> = []
  readonly healed: Array<Healed> = []
  readonly #ways: ReadonlyArray<Way>
  readonly #note: (line: string) => void
  readonly #settings: CommonSettings
  readonly #clients: Array<Client> = []
  #processes = 0

  constructor(ways: ReadonlyArray<Way>, note: (line: string) => void, settings: CommonSettings) {
    this.#ways = ways
    this.#note = note
    this.#settings = settings
  }

  /** The names of each process's fibers. */
  get fibers(): ReadonlyArray<string> {
    return this.#settings.kinds.flatMap((kind) => Array.from({ length: FIBERS }, (_, i) => `${kind}-${i}`))
  }

  readonly startAll = Effect.suspend(() =>
    Effect.forEach(this.#ways, (_, slot) => this.start(slot), { concurrency: "unbounded", discard: true })
  )

  /** Starts a client process in that slot, and waits until it is ready, or dead. */
  start(slot: number): Effect.Effect<void> {
    return Effect.suspend(() => {
      const process = this.#processes++
      const { natMap, urls } = this.#ways[slot]!
      const { library, server, steady } = this.#settings
      const isLong = server === "single" && library === undefined && !steady && !mortal.includes(slot)
      const settings: ClientSettings = {
        ...this.#settings,
        ...{ urls, natMap, fibers: FIBERS },
        ...(steady ? steadyLoad : usualLoad),
        leaseTime: isLong ? LONG_LEASE_MILLIS : undefined
      }
      const program = fileURLToPath(new URL(library === undefined ? "client.js" : "libraryClient.js", import.meta.url))
      const child = fork(program, [JSON.stringify(settings)], {
        stdio: ["ignore", "ignore", "pipe", "ipc"],
        execArgv: [],
        detached: isProgram(library)
      })
      const client: Client = {
        ...{ process, child, ready: Deferred.makeUnsafe<void>(), gone: Deferred.makeUnsafe<void>() },
        ...{ isStopped: false, isKilled: false, inside: false, enteredAt: Number.NEGATIVE_INFINITY }
      }
      this.#clients[slot] = client
      let errors = ""
      child.stderr!.setEncoding("utf8").on("data", (text: string) => (errors += text))
      child.on("message", (message) => {
        const event = message as ClientEvent
        this.told.push({ ...event, process })
        if (event.event === "enters") {
          client.inside = true
          client.enteredAt = event.at
        } else if (event.event === "leaves" || event.event === "ended") client.inside = false
        if (event.event === "ready") Deferred.doneUnsafe(client.ready, Effect.void)
      })
      child.on("close", (code, signal) => {
        if (!client.isKilled && code !== 0) {
          this.violations.push({ at: now(), what: `process ${process} ended with ${code ?? signal}: ${errors.trim()}` })
        }
        Deferred.doneUnsafe(client.ready, Effect.void)
        Deferred.doneUnsafe(client.gone, Effect.void)
      })
      this.#note(`client ${slot} is process ${process}`)
      return Deferred.await(client.ready)
    })
  }

  /** Does to a process what is to be done. */
  commit(fault: Fault, { signal }: OnProcess): Effect.Effect<void> {
    const client = this.#clients[fault.of]!
    const see = (event: "killed" | "stopped" | "continued") =>
      void this.seen.push({ event, at: now(), process: client.process })
    const heal = ({ process }: Client, at = now()) => void this.healed.push({ fault: fault.fault, at, process })
    return Effect.gen({ self: this }, function* () {
      if (client.isKilled) return
      if (signal === "SIGKILL") {
        client.isKilled = true
        this.#signal(client, signal)
        yield* Deferred.await(client.gone)
        see("killed")
        yield* Effect.sleep(fault.lasts)
        yield* this.start(fault.of)
        return heal(this.#clients[fault.of]!)
      }
      if (signal === "block") {
        heal(client, now() + fault.lasts)
        return order(client, { order: "block", millis: fault.lasts })
      }
      while (true) {
        while (fault.inside === true && !client.inside) yield* Effect.sleep(1)
        if (client.isKilled || client.isStopped) return
        client.isStopped = true
        see("stopped")
        this.#signal(client, "SIGSTOP")
        // until then, what it has said before arrives: it may have left when the signal came
        yield* Effect.sleep(Math.min(100, fault.lasts))
        const isMissed = fault.inside === true && !client.inside
        if (!isMissed) yield* Effect.sleep(Math.max(0, fault.lasts - 100))
        this.#signal(client, "SIGCONT")
        client.isStopped = false
        see("continued")
        if (!isMissed) return heal(client)
      }
    })
  }

  /** Does to a client's connections what is to be done: of a quorum, to those to one member or to all. */
  disturb(fault: Fault, nemesis: OnConnections): Effect.Effect<void> {
    const { process } = this.#clients[fault.of]!
    const { proxies } = this.#ways[fault.of]!
    const isQuorum = this.#settings.server === "quorum"
    const some = isQuorum && fault.at % 2 === 0 ? [proxies[fault.at % proxies.length]!] : proxies
    return Effect.gen({ self: this }, function* () {
      const before = inUse(some)
      this.seen.push({ event: "cutOff", at: now(), process })
      yield* nemesis.play(some, fault)
      this.healed.push({ fault: fault.fault, at: now(), process })
      const until = now() + RECONNECT_MILLIS
      while (inUse(some) < before && now() < until) yield* Effect.sleep(10)
      this.seen.push({ event: "reached", at: now() + COMMAND_MILLIS, process })
    })
  }

  /** How many connections each client uses. */
  get reachable(): ReadonlyArray<readonly [client: Client, connections: number]> {
    return this.#clients.map((client, slot) => [client, inUse(this.#ways[slot]!.proxies)] as const)
  }

  /**
   * After a fault that broke all connections. A client whose connections came back late, though the server answered others, was cut off in between: by the
   * machine. Until the server answers anybody, nobody is.
   */
  comeBack(since: number, before: Clients["reachable"]): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      const until = now() + RECONNECT_MILLIS
      const answers = () =>
        this.#ways.map(({ proxies }) => proxies.flatMap((proxy) => proxy.answeredAfter(since)).sort((a, b) => a - b))
      while (answers().some(({ length }, slot) => length < before[slot]![1]) && now() < until) yield* Effect.sleep(10)
      const servesAt = Math.min(...answers().flat(), now())
      for (const [slot, times] of answers().entries()) {
        const [{ process }, count] = before[slot]!
        if (count === 0) continue
        this.seen.push({ event: "cutOff", at: servesAt, process })
        this.seen.push({ event: "reached", at: (times[count - 1] ?? now()) + COMMAND_MILLIS, process })
      }
    })
  }

  /** Waits until all of them have entered a section since the last fault was over; for no longer than that. */
  recovered(atMostMillis: number): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      const since = this.healed.at(-1)?.at ?? 0
      const until = Math.max(since, now()) + atMostMillis
      while (this.#clients.some(({ enteredAt }) => enteredAt < since) && now() < until) yield* Effect.sleep(20)
    })
  }

  /** For how long one of them had no time, from then until then. */
  stalledBetween(from: number, to = Number.POSITIVE_INFINITY): number {
    const stalls = new Map<number, number>()
    for (const event of this.told) {
      if (event.event !== "stalled" || event.at < from || event.since > to) continue
      const millis = Math.min(event.at, to) - Math.max(event.since, from)
      stalls.set(event.process, (stalls.get(event.process) ?? 0) + millis)
    }
    return Math.max(0, ...stalls.values())
  }

  /** Tells all that each fiber has one section to go. */
  finish(): ReadonlyArray<Client> {
    for (const client of this.#clients) order(client, { order: "finish" })
    return this.#clients
  }

  killAll(): void {
    for (const client of this.#clients) {
      client.isKilled = true
      this.#signal(client, "SIGKILL")
    }
  }

  #signal({ child }: Client, signal: NodeJS.Signals): void {
    if (child.exitCode !== null || child.signalCode !== null) return
    process.kill(isProgram(this.#settings.library) ? -child.pid! : child.pid!, signal)
  }

  /** What happened to processes, a line each. */
  get notes(): ReadonlyArray<{ readonly at: number; readonly line: string }> {
    return this.seen.map(({ at, event, process }) => ({ at, line: `process ${process}: ${event}` }))
  }
}

const inUse = (proxies: Way["proxies"]) => proxies.reduce((sum, proxy) => sum + proxy.inUse, 0)

const order = ({ child }: Client, order: Order) => {
  if (child.connected) child.send(order)
}
