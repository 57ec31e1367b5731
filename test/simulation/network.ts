/**
 * Servers in memory behind a slow network that breaks now and then. A broken connection is replaced by a new one; what had been
 * written to the old one may still arrive, in order and up to a minute late, whatever the new one has delivered by then.
 * Everything happens in virtual time and is decided by a seed, so that a failure can be repeated.
 */
import type { randomOf } from "@effect-redis-lock/playground/VirtualTime"
import { Cause, Effect, Exit, Layer, Option, Queue, Stream } from "effect"
import { type LockStore, type LockStoreError, RedisDriver, RedisLock, type StoreReason } from "effect-redis-lock"
import { startable } from "../kit/startable.ts"
import { clientOf, serviceOf } from "../kit/testStore.ts"
import { unreachable } from "../kit/wrappedStore.ts"
import {
  acknowledgements,
  copyOf,
  type Database,
  execute,
  makeDatabase,
  type Result,
  sending,
  ServerClocks
} from "./memory.ts"
import type { VirtualTime } from "./virtualTime.ts"

export type Random = ReturnType<typeof randomOf>

export const between = (random: Random, least: number, most: number) =>
  Math.floor(least + random() * (most - least + 1))

/** One operation on its way to a server, or back. */
export interface Request {
  readonly operation: LockStore.Operation
  readonly keys: ReadonlyArray<string>
  readonly args: ReadonlyArray<string | number>
  readonly client: number
  readonly sentAt: number
  /** When its sender stopped waiting for the reply without having it: it was interrupted, or told that it failed. */
  givenUpAt: number | undefined
}

/** Is notified of what happens. */
export interface Observer {
  readonly executed: (server: Server, request: Request, result: Result) => void
  readonly noted: (event: string) => void
}

/** A process, of a server or of clients: while it is stopped, what falls due or arrives waits for it. */
export class Process {
  readonly #time: VirtualTime
  #isStopped = false
  #waiting: Array<() => void> = []

  constructor(time: VirtualTime) {
    this.#time = time
  }

  /** Whether it is stopped, or has not caught up yet with what has happened meanwhile. */
  isBehind = false

  /** Calls back at once, or when a stopped process goes on. */
  whenAwake(callback: () => void): void {
    if (this.#isStopped) this.#waiting.push(callback)
    else callback()
  }

  stop(): void {
    this.#isStopped = this.isBehind = true
  }

  /** One thing happens after another, each with all that follows from it. */
  resume(): void {
    this.#isStopped = false
    for (const callback of this.#waiting.splice(0)) this.#time.after(0, () => this.whenAwake(callback))
    this.#time.after(0, () => {
      this.isBehind = this.#isStopped
    })
  }

  /** Calls back after the given milliseconds; the result cancels it. */
  after(millis: number, callback: () => void): () => void {
    let isCancelled = false
    const cancel = this.#time.after(millis, () => this.whenAwake(() => isCancelled || callback()))
    return () => {
      isCancelled = true
      cancel()
    }
  }
}

/** With what a server may refuse a command, any of them. */
const refusals = [
  "READONLY You can't write against a read only replica.",
  "LOADING Redis is loading the dataset in memory",
  "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
  "OOM command not allowed when used memory > 'maxmemory'.",
  "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
  "NOREPLICAS Not enough good replicas to write.",
  "CLUSTERDOWN The cluster is down",
  "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
  "TRYAGAIN Multiple keys request during rehashing of slot"
]

/** After how many milliseconds a driver sends a refused command again, behind those that were sent since. */
const resentAfter: Readonly<Record<string, number>> = { NOSCRIPT: 0, MOVED: 0, TRYAGAIN: 50 }

const refusal = (text: string): Result => {
  const cause = new Error(text)
  return Exit.fail(new RedisDriver.RedisDriverError({ reason: RedisDriver.reasonOf(cause), cause }))
}

const pauseBeforeResending = (result: Result): number | undefined => {
  const failure = Exit.findErrorOption(result)
  return Option.isSome(failure) ? resentAfter[(failure.value.cause as Error).message.split(" ")[0]!] : undefined
}

/** A server, whose clock is ahead by some milliseconds. */
export class Server {
  readonly number: number
  readonly time: VirtualTime
  readonly #observer: Observer
  /** How far its clock is ahead. */
  #clock: { aheadMillis: number }
  db: Database
  isDown = false
  isStopped = false
  /** With what it refuses commands for a while, and how many of them. */
  refuses: { readonly text: string; readonly share: number } | undefined = undefined
  /** The node of the cluster that serves the slot of all names. */
  node = 0
  /** How often it has crashed: connections do not survive a crash. */
  crashes = 0
  readonly #links: Array<Link> = []
  /** Requests in its sockets while it is stopped. */
  #waiting: Array<() => void> = []
  /** How many milliseconds its replica takes to catch up; undefined if it does not do so by itself. */
  #lag: (() => number) | undefined
  isReplicaBehind = false
  /** What its replica has. */
  #replica: Database
  /** Those who wait until its replica has caught up. */
  #unacknowledged: Array<() => void> = []

  constructor(number: number, time: VirtualTime, aheadMillis: number, observer: Observer, lag?: () => number) {
    this.number = number
    this.time = time
    this.#clock = { aheadMillis }
    this.#observer = observer
    this.#lag = lag
    this.db = this.#replica = this.#empty()
  }

  #empty(): Database {
    const clock = this.#clock
    return makeDatabase(() => this.time.now + clock.aheadMillis)
  }

  #note(event: string): void {
    this.#observer.noted(`server ${this.number} ${event}`)
  }

  /** Why a request is not run that was sent to a node; undefined if it is. */
  refusalOf(request: Request, node: number, random: Random): Result | undefined {
    const { refuses } = this
    const text =
      node !== this.node
        ? "MOVED 0 another:6379"
        : refuses !== undefined && random() < refuses.share
          ? refuses.text
          : undefined
    return text === undefined ? undefined : this.refusing(request, text)
  }

  refusing({ client, keys, operation }: Request, text: string): Result {
    this.#note(`refuses ${operation} ${keys[0]} of client ${client}: ${text}`)
    return refusal(text)
  }

  connect(link: Link): void {
    this.#links.push(link)
  }

  /** Refuses commands for a while, each with this probability; undefined to serve all again. */
  refuse(random: Random, share: number): void {
    this.refuses = { text: refusals[between(random, 0, refusals.length - 1)]!, share }
    this.#note(`refuses ${share === 1 ? "all" : "some"} commands: ${this.refuses.text}`)
  }

  /** The slot is being moved to another node: what needs several of its keys is refused, as they may be apart. */
  beginToMove(): void {
    this.#note("begins to move the slot to another node")
    this.refuses = { text: "TRYAGAIN Multiple keys request during rehashing of slot", share: 0.8 }
  }

  /** Another node serves the slot, by its own clock. It has all keys, and nobody listens to it yet. */
  move(aheadMillis: number): void {
    this.node++
    this.#note(`has moved the slot to node ${this.node}, whose clock is ahead by ${aheadMillis} ms`)
    this.refuses = undefined
    this.#clock = { aheadMillis }
    this.db = copyOf(this.db, this.#empty())
    for (const link of this.#links) link.relocateSubscriptions()
  }

  execute(request: Request): Result {
    const result = execute(this.db, request.operation, request.keys, request.args)
    this.#observer.executed(this, request, result)
    if (this.#lag !== undefined && !this.isReplicaBehind) {
      this.isReplicaBehind = true
      this.time.after(this.#lag(), () => this.replicate())
    }
    return result
  }

  /** Calls back at once, or when a stopped server goes on; never if it crashes before. */
  whenAwake(callback: () => void): void {
    if (this.isDown) return
    if (this.isStopped) this.#waiting.push(callback)
    else callback()
  }

  stop(): void {
    this.#note("stops")
    this.isStopped = true
  }

  resume(): void {
    if (!this.isStopped) return
    this.#note("goes on")
    this.isStopped = false
    const waiting = this.#waiting
    this.#waiting = []
    for (const callback of waiting) callback()
  }

  crash(): void {
    this.#note("crashes")
    this.isDown = true
    this.isStopped = false
    this.#waiting = []
    this.#unacknowledged = []
    this.crashes++
    for (const link of this.#links) link.break()
  }

  restart(withData: boolean): void {
    this.#note(withData ? "is back" : "is back without its data")
    if (!withData) this.db = this.#empty()
    this.isDown = false
  }

  /** The replica has everything now. */
  replicate(): void {
    this.isReplicaBehind = false
    this.#replica = copyOf(this.db, this.#empty())
    for (const acknowledge of this.#unacknowledged.splice(0)) acknowledge()
  }

  /** Calls back when the replica has what there is now; never if the server crashes before. */
  whenReplicated(callback: () => void): void {
    if (this.isReplicaBehind) this.#unacknowledged.push(callback)
    else callback()
  }

  /** The replica takes over: connections break, and what it does not know is lost. It has a replica in turn. */
  failOver(): void {
    this.#note("fails over to its replica")
    this.crash()
    this.db = this.#replica
    this.replicate()
    this.isDown = false
  }

  stepClock(millis: number): void {
    this.#note(`sets its clock by ${millis} ms`)
    this.#clock.aheadMillis += millis
  }

  heal(): void {
    this.refuses = undefined
    if (this.#lag !== undefined) this.#lag = () => 1
    this.resume()
    if (this.isDown) this.restart(true)
  }
}

export interface Faults {
  /** The usual maximum for a request or a reply; some take up to ten times as long. */
  readonly latencyMillis: number
  /** The probability that a request breaks its connection, or that a message is lost. */
  readonly loss: number
  /** The probability that a message, and those behind it, lie somewhere for a while before they arrive; and that it is repeated, or forged. */
  readonly lying: number
  /** The longest time after which something that was written to a broken connection still arrives. */
  readonly lateMillis: number
  /** The probability that a command is refused with any error, or that the connection breaks just before or after it takes effect. */
  readonly errors?: number
}

const reliable: Faults = { latencyMillis: 1, loss: 0, lying: 0, lateMillis: 0 }

interface Written {
  readonly request: Request
  /** The node that it is sent to. */
  readonly node: number
  readonly onExit: (result: Result) => void
  arrivesAt: number
  cancelArrival: () => void
}

/** One TCP connection: what is written to it arrives in that order, or not at all. */
class Connection {
  readonly server: Server
  readonly #link: Link
  readonly #crashes: number
  readonly #written: Array<Written> = []
  readonly #unanswered = new Set<Written>()
  #lastArrival = 0
  #lastReply = 0
  isBroken = false

  constructor(link: Link, server: Server) {
    this.#link = link
    this.server = server
    this.#crashes = server.crashes
  }

  write(request: Request, onExit: (result: Result) => void): () => void {
    const written: Written = { request, node: this.#link.node, onExit, arrivesAt: 0, cancelArrival: () => {} }
    this.#written.push(written)
    this.#unanswered.add(written)
    this.#arriveAt(written, this.server.time.now + this.#link.latency())
    return () => void this.#unanswered.delete(written)
  }

  #arriveAt(written: Written, at: number): void {
    written.cancelArrival()
    written.arrivesAt = this.#lastArrival = Math.max(at, this.#lastArrival)
    const { time } = this.server
    written.cancelArrival = time.after(written.arrivesAt - time.now, () => {
      this.#written.shift()
      if (this.server.crashes !== this.#crashes) return
      this.server.whenAwake(() => this.#execute(written))
    })
  }

  #execute(written: Written): void {
    const { request } = written
    const fault = this.#fault()
    if (fault === "breaks before") return this.#link.break()
    const result =
      this.server.refusalOf(request, written.node, this.#link.random) ??
      (fault === undefined || fault === "breaks after"
        ? this.server.execute(request)
        : this.server.refusing(request, fault))
    if (fault === "breaks after") this.#link.break()
    if (this.isBroken) return
    const { time } = this.server
    this.#lastReply = Math.max(this.#lastReply, time.now + this.#link.latency())
    time.after(this.#lastReply - time.now, () => {
      if (!this.isBroken && this.#unanswered.delete(written)) written.onExit(result)
    })
  }

  /** What goes wrong with a command that arrives. */
  #fault(): string | undefined {
    const { errors = 0 } = this.#link.faults
    const { random } = this.#link
    if (errors === 0 || this.isBroken || random() >= errors) return undefined
    const all = ["breaks before", "breaks after", "NOSCRIPT No matching script. Please use EVAL.", ...refusals]
    return all[between(random, 0, all.length - 1)]
  }

  /** Nothing arrives for a while, and nothing is lost. */
  stall(millis: number): void {
    this.#lastArrival = 0
    for (const written of this.#written) this.#arriveAt(written, written.arrivesAt + millis)
    this.#lastArrival = Math.max(this.#lastArrival, this.server.time.now + millis)
  }

  /** What is on its way arrives now. */
  catchUp(): void {
    this.#lastArrival = 0
    for (const written of [...this.#written]) this.#arriveAt(written, this.server.time.now)
  }

  /** No reply is delivered any more; some of the requests that are under way still arrive. */
  break(): void {
    this.isBroken = true
    const { link, server } = { link: this.#link, server: this.server }
    const kept = link.random() < 0.3 ? 0 : between(link.random, 0, this.#written.length)
    for (const written of this.#written.splice(kept)) written.cancelArrival()
    this.#lastArrival = 0
    let late = link.lateness()
    for (const written of this.#written) {
      this.#arriveAt(written, server.time.now + late)
      if (link.random() < 0.2) late = Math.min(link.faults.lateMillis, late + link.lateness())
    }
    const unanswered = [...this.#unanswered]
    this.#unanswered.clear()
    for (const { onExit } of unanswered) {
      onExit(failed("ConnectionLost"))
    }
  }

  /** When the last of it arrives. */
  get restsAt(): number {
    return this.#written.at(-1)?.arrivesAt ?? 0
  }
}

interface Subscription {
  /** Listens at the server that serves the channel now, in place of the one before. */
  listen: () => void
  readonly onSignal: (signal: RedisDriver.Signal) => void
  readonly onFailure: (error: LockStoreError) => void
  readonly channel: string
}

/** One client's way to a server: a connection for commands and one for messages, each replaced when it breaks. */
export class Link {
  readonly client: number
  readonly server: Server
  readonly random: Random
  readonly commandTimeoutMillis: number
  readonly #observer: Observer
  /** That of its clients. */
  readonly process: Process
  readonly #clockRate: number
  faults: Faults
  isCut = false
  /** The node that serves the slot, as far as is known. */
  node = 0
  #connection: Connection | undefined
  readonly #old: Array<Connection> = []
  readonly #subscriptions = new Set<Subscription>()
  #lastSubscribed = 0
  /** Called when commands can be sent again. */
  readonly reconnectListeners = new Set<() => void>()

  constructor(
    client: number,
    server: Server,
    random: Random,
    faults: Faults,
    commandTimeoutMillis: number,
    observer: Observer,
    clockRate = 1,
    process = new Process(server.time)
  ) {
    this.client = client
    this.server = server
    this.random = random
    this.faults = faults
    this.commandTimeoutMillis = commandTimeoutMillis
    this.#observer = observer
    this.#connection = new Connection(this, server)
    this.process = process
    this.#clockRate = clockRate
    server.connect(this)
  }

  /** What a client knows of the server's clock, which may be another server's after a reconnect: nothing yet. */
  makeClocks(): InstanceType<typeof ServerClocks> {
    const { time } = this.server
    return new ServerClocks(
      () => (time.now - time.start) * this.#clockRate,
      () => this.serverName
    )
  }

  /** Another one may answer after each reconnect, or redirection. */
  get serverName(): string {
    return `${this.#old.length}, node ${this.node}`
  }

  latency(): number {
    const { latencyMillis } = this.faults
    return between(this.random, 0, this.random() < 0.05 ? 10 * latencyMillis : latencyMillis)
  }

  /** How late the rest of a broken connection arrives. */
  lateness(): number {
    const kind = this.random()
    const { lateMillis } = this.faults
    return between(this.random, 0, Math.min(lateMillis, kind < 0.4 ? 200 : kind < 0.8 ? 5000 : lateMillis))
  }

  /** For how long a message lies: about as long as what it grants may last. */
  #lying(): number {
    return between(this.random, 0, 3000)
  }

  #isUnreachable(): boolean {
    return this.isCut || this.server.isDown || this.#connection === undefined
  }

  #note(event: string): void {
    this.#observer.noted(`client ${this.client} to server ${this.server.number}: ${event}`)
  }

  /** The connection breaks; another is made, at once or a little later. */
  break(): void {
    const connection = this.#connection
    if (connection === undefined) return
    this.#note("the connection breaks")
    this.#connection = undefined
    this.#old.push(connection)
    const reconnect = () => {
      if (this.#connection !== undefined) return
      if (this.isCut || this.server.isDown || this.server.isStopped) this.process.after(20, reconnect)
      else {
        this.#connection = new Connection(this, this.server)
        for (const listener of this.reconnectListeners) listener()
      }
    }
    const delay = this.random() < 0.5 ? 0 : between(this.random, 1, 100)
    if (delay === 0) this.process.whenAwake(reconnect)
    else this.process.after(delay, reconnect)
    connection.break()
    this.#breakSubscriptions()
  }

  #breakSubscriptions(): void {
    const subscriptions = [...this.#subscriptions]
    this.#subscriptions.clear()
    for (const { channel, onFailure } of subscriptions) {
      this.process.whenAwake(() => onFailure(unreachable("subscribe", channel, "ConnectionLost")))
    }
  }

  /** Its channels are served elsewhere: what is published before they are subscribed there is lost. */
  relocateSubscriptions(): void {
    for (const subscription of this.#subscriptions) {
      this.process.after(between(this.random, 1, 1000), () => {
        if (this.#subscriptions.has(subscription)) subscription.listen()
      })
    }
  }

  cut(): void {
    this.#note("is cut")
    this.isCut = true
    this.break()
  }

  /** Commands arrive late from now on, on a connection that holds. */
  stall(millis: number): void {
    this.#note(`delivers nothing for ${millis} ms`)
    this.#connection?.stall(millis)
  }

  heal(): void {
    this.isCut = false
    this.faults = reliable
    this.#connection?.catchUp()
  }

  /** When the last command of a broken connection arrives. */
  get restsAt(): number {
    return Math.max(0, ...this.#old.map((connection) => connection.restsAt))
  }

  /** Sends one operation, again if it is refused so that a driver sends it again; the result abandons it. */
  send(
    operation: LockStore.Operation,
    keys: ReadonlyArray<string>,
    args: ReadonlyArray<string | number>,
    onExit: (result: Result) => void
  ): () => void {
    const { time } = this.server
    const request: Request = { operation, keys, args, client: this.client, sentAt: time.now, givenUpAt: undefined }
    let isOver = false
    let refused: Result | undefined
    let forget = () => {}
    let cancelTimeout = () => {}
    const abandon = () => {
      isOver = true
      cancelTimeout()
      forget()
      request.givenUpAt ??= time.now
    }
    const end = (result: Result) => {
      if (isOver) return
      isOver = true
      cancelTimeout()
      if (Exit.isFailure(result)) request.givenUpAt ??= time.now
      onExit(result)
    }
    const write = () => {
      const connection = this.#connection
      if (connection === undefined || this.#isUnreachable()) return end(failed("NotConnected"))
      refused = undefined
      forget = connection.write(request, (result) => this.process.whenAwake(() => receive(result)))
    }
    const receive = (result: Result) => {
      if (isOver) return
      const pause = pauseBeforeResending(result)
      if (pause === undefined) return end(result)
      this.node = this.server.node
      refused = result
      if (pause === 0) write()
      else forget = this.process.after(pause, write)
    }
    write()
    if (isOver) return () => {}
    const connection = this.#connection!
    cancelTimeout = this.process.after(this.commandTimeoutMillis, () => {
      abandon()
      onExit(refused ?? failed("TimedOut"))
      // a driver gives up a connection that stays silent
      if (refused === undefined && this.random() < 0.3 && connection === this.#connection) this.break()
    })
    if (this.random() < this.faults.loss) {
      time.after(between(this.random, 0, 2 * this.faults.latencyMillis), () => {
        if (connection === this.#connection) this.break()
      })
    }
    return abandon
  }

  /** The message comes once more, behind later ones; or one like it that the server has not sent. */
  #repeatOrForge(subscription: Subscription, { message }: Extract<RedisDriver.Signal, { _tag: "Message" }>): void {
    const again = this.random() < 0.5 ? message : forgedFrom(message, this.random)
    this.server.time.after(this.latency() + this.#lying(), () => {
      this.process.whenAwake(() => {
        if (this.#subscriptions.has(subscription)) subscription.onSignal({ _tag: "Message", message: again })
      })
    })
  }

  /** Subscribes to a channel; the result ends the subscription. */
  subscribe(channel: string, onSignal: Subscription["onSignal"], onFailure: Subscription["onFailure"]): () => void {
    const subscription: Subscription = { channel, onSignal, onFailure, listen: () => {} }
    if (this.#isUnreachable()) {
      onFailure(unreachable("subscribe", channel))
      return () => {}
    }
    this.#subscriptions.add(subscription)
    const { time } = this.server
    let last = 0
    const tell = (signal: RedisDriver.Signal) => {
      const lies = this.random() < this.faults.lying ? this.#lying() : 0
      last = Math.max(last, time.now + this.latency() + lies)
      this.process.after(last - time.now, () => {
        if (this.#subscriptions.has(subscription)) onSignal(signal)
      })
      if (signal._tag === "Message" && this.random() < this.faults.lying) this.#repeatOrForge(subscription, signal)
    }
    let stop = () => {}
    subscription.listen = () => {
      stop()
      stop = this.server.db.listen(channel, (message) => {
        if (this.random() >= this.faults.loss) tell({ _tag: "Message", message })
      })
      tell({ _tag: "Subscribed" })
    }
    // over one connection, in the order in which they were sent
    this.#lastSubscribed = Math.max(this.#lastSubscribed, time.now + this.latency())
    time.after(this.#lastSubscribed - time.now, () =>
      this.server.whenAwake(() => {
        if (this.#subscriptions.has(subscription)) subscription.listen()
      })
    )
    return () => {
      this.#subscriptions.delete(subscription)
      stop()
    }
  }
}

/** A message as somebody might write it who has heard others, but not this one. */
const forgedFrom = (message: string, random: Random): string => {
  const [side, owner, ...grant] = message.split(" ")
  if (owner === undefined) return message
  return [side, random() < 0.5 ? owner.slice(1) : `${owner}0`, ...grant].join(" ")
}

/** The failure of a command that a driver could not carry out. */
const failed = (reason: StoreReason): Result =>
  Exit.fail(new RedisDriver.RedisDriverError({ reason, cause: new Error("the network") }))

/** How grants wait until the one replica has them. */
const acknowledging = (link: Link) =>
  acknowledgements({
    server: () => link.serverName,
    slot: () => 0,
    commandTimeoutMillis: link.commandTimeoutMillis,
    sendBlocking: (_, commands) =>
      startable<ReadonlyArray<RedisDriver.Reply>, RedisDriver.RedisDriverError>((onExit) => {
        const replies: Array<RedisDriver.Reply> = []
        const sendNext = (): void => {
          const next = commands[replies.length]
          if (next === undefined) return onExit(Exit.succeed(replies))
          runBlocking(link, next, (exit) => {
            if (Exit.isFailure(exit)) return onExit(Exit.failCause(exit.cause))
            replies.push(exit.value)
            sendNext()
          })
        }
        sendNext()
        return { cancel: () => {} }
      })
  })

/** A command of those that confirm grants, and wait for replicas. */
const runBlocking = (
  link: Link,
  [name, ...args]: ReadonlyArray<string | number>,
  onExit: (result: Result) => void
): void => {
  const { server } = link
  if (name === "INFO") return onExit(Exit.succeed("slave0:state=online"))
  if (name === "EVAL") {
    const [, count, ...rest] = args as [string, number, ...Array<string>]
    link.send("grant/confirm", rest.slice(0, count), rest.slice(count), onExit)
    return
  }
  const [replicas, millis] = args as [number, number]
  if (replicas === 0) return onExit(Exit.succeed(0))
  const { crashes } = server
  const cancel = server.time.after(millis, () =>
    onExit(server.crashes === crashes ? Exit.succeed(0) : failed("ConnectionLost"))
  )
  server.whenReplicated(() => {
    cancel()
    onExit(Exit.succeed(1))
  })
}

/** The store that a client reaches over a link. */
export const storeOf = (link: Link, clocks = link.makeClocks()): LockStore.LockStore["Service"] => ({
  run: sending({
    eval: ({ name }, keys, args, onExit) => ({
      cancel: link.send(name as LockStore.Operation, keys, args, onExit)
    }),
    clocks,
    lifeMillis: link.commandTimeoutMillis
  }),
  commandLifeMillis: link.commandTimeoutMillis,
  commandTimeoutMillis: link.commandTimeoutMillis,
  serverMicros: (key) => clocks.latestMicros(key),
  longestSince: (key, serverMicros) => clocks.of(key).longestSince(serverMicros, clocks.now()),
  acknowledges: acknowledging(link),
  reconnects: Stream.callback<void>((queue) =>
    Effect.acquireRelease(
      Effect.sync(() => {
        const listener = () => void Queue.offerUnsafe(queue, undefined)
        link.reconnectListeners.add(listener)
        return listener
      }),
      (listener) => Effect.sync(() => link.reconnectListeners.delete(listener))
    )
  ),
  handsOver: true,
  subscribe: (channel) =>
    Stream.callback<RedisDriver.Signal, LockStoreError>((signals) =>
      Effect.acquireRelease(
        Effect.sync(() =>
          link.subscribe(
            channel,
            (signal) => void Queue.offerUnsafe(signals, signal),
            (error) => void Queue.failCauseUnsafe(signals, Cause.fail(error))
          )
        ),
        (stop) => Effect.sync(stop)
      )
    ),
  scan: () => Stream.empty,
  publish: "PUBLISH",
  slot: () => 0
})

/** A client of one server, or of a quorum; and its clients of each. */
export const clientOver = Effect.fnUntraced(function* (
  links: ReadonlyArray<Link>,
  options: RedisLock.RedisLockOptions
) {
  const members = yield* Effect.forEach(links, (link) => clientOf({ store: storeOf(link) }, options))
  const service =
    members.length === 1
      ? members[0]!
      : yield* serviceOf(RedisLock.layerQuorum(members.map((member) => Layer.succeed(RedisLock.RedisLock, member))))
  return { members, service }
})
