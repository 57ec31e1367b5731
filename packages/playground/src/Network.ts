/**
 * A Redis in memory, and the connections of the processes to it: a driver for each, which can be cut.
 */
import { Clock, Context, Effect, Exit, Layer, Queue, Stream } from "effect"
import { LockStore, type LockStoreError, RedisDriver } from "effect-redis-lock"
import { Process, type VirtualTime } from "./VirtualTime.ts"

type Store = LockStore.LockStore["Service"]
type Result = Exit.Exit<RedisDriver.Reply, RedisDriver.RedisDriverError>

/** How long a command or a reply is under way, milliseconds. */
const latencyMillis = 6
const commandTimeoutMillis = 1000
const reconnectMillis = 100

const emptyStore = Effect.map(Effect.scoped(Layer.build(Layer.fresh(LockStore.layerMemory))), (context) =>
  Context.get(context, LockStore.LockStore)
)

/** Loads the Lua interpreter of the memory store; a {@link Server} can be made afterwards. */
export const load = async (): Promise<void> => void (await Effect.runPromise(emptyStore))

/** A Redis server: the memory store of the library, whose scripts, and any other, it runs. */
export class Server {
  readonly process: Process
  readonly links = new Set<Link>()
  /** Called when something may have changed. */
  onChange = () => {}
  #store: Store

  constructor(time: VirtualTime) {
    this.process = new Process(time)
    this.#store = this.#empty()
  }

  #empty(): Store {
    return Effect.runSync(Effect.provideService(emptyStore, Clock.Clock, this.process.clock))
  }

  eval(script: RedisDriver.RedisScript, keys: ReadonlyArray<string>, args: ReadonlyArray<string | number>): Result {
    const result = this.#run(script, keys, args)
    this.onChange()
    return Exit.mapError(result, ({ cause, reason }) => new RedisDriver.RedisDriverError({ cause, reason }))
  }

  /** Runs a script that changes nothing. */
  look(lua: string, keys: ReadonlyArray<string>): RedisDriver.Reply {
    return Effect.runSync(this.#run({ lua, name: "look", sha1: "" }, keys, []))
  }

  #run(
    { lua, name, sha1 }: RedisDriver.RedisScript,
    keys: ReadonlyArray<string>,
    args: ReadonlyArray<string | number>
  ): Exit.Exit<RedisDriver.Reply, LockStoreError> {
    return Effect.runSyncExit(
      this.#store.run<RedisDriver.Reply>({
        // deadlines and the meaning of replies are the business of those who send a script
        operation: {
          name: "lock/acquire",
          boundAt: undefined,
          writesShared: false,
          givesBack: undefined,
          quorum: undefined,
          script: { lua, name, sha1 },
          hasDeadline: false,
          tellsTime: false,
          reply: (raw) => raw
        },
        keys,
        args
      })
    )
  }

  subscribe(channel: string, onSignal: (signal: RedisDriver.Signal) => void): () => void {
    const listening = Effect.runFork(
      Stream.runForEach(this.#store.subscribe(channel), (signal) => Effect.sync(() => onSignal(signal))),
      { scheduler: this.process.scheduler }
    )
    return () => listening.interruptUnsafe()
  }

  /** Is back at once, without any data and without any connection. */
  restartEmpty(): void {
    this.#store = this.#empty()
    for (const link of this.links) {
      link.breakOff()
      if (!link.isCut) this.process.after(reconnectMillis, () => link.connect())
    }
    this.onChange()
  }
}

interface Subscription {
  readonly channel: string
  readonly onSignal: (signal: RedisDriver.Signal) => void
  stop: () => void
}

/** The connection of a process to the server. */
export class Link {
  readonly #process: Process
  readonly #server: Server
  /** Whether it cannot be established. */
  isCut = false
  #isConnected = true
  #connections = 1
  readonly #unanswered = new Set<(result: Result) => void>()
  readonly #subscriptions = new Set<Subscription>()
  readonly #reconnected = new Set<() => void>()

  constructor(process: Process, server: Server) {
    this.#process = process
    this.#server = server
    server.links.add(this)
  }

  cut(): void {
    this.isCut = true
    this.breakOff()
  }

  mend(): void {
    this.isCut = false
    this.connect()
  }

  /** The end of a process is the end of its connection. */
  close(): void {
    this.cut()
    this.#server.links.delete(this)
  }

  /** No reply comes any more. What was sent may still be carried out. */
  breakOff(): void {
    this.#isConnected = false
    for (const settle of this.#unanswered) this.#process.run(() => settle(failed("ConnectionLost")))
    for (const subscription of this.#subscriptions) subscription.stop()
  }

  connect(): void {
    if (this.isCut || this.#isConnected) return
    this.#isConnected = true
    this.#connections++
    for (const subscription of this.#subscriptions) this.#subscribe(subscription)
    for (const listener of this.#reconnected) this.#process.run(listener)
  }

  #send(
    script: RedisDriver.RedisScript,
    keys: ReadonlyArray<string>,
    args: ReadonlyArray<string | number>,
    onExit: (result: Result) => void
  ): RedisDriver.Cancellable {
    if (!this.#isConnected) {
      onExit(failed("NotConnected"))
      return { cancel: () => {} }
    }
    const cancel = () => {
      this.#unanswered.delete(settle)
      cancelTimeout()
    }
    const settle = (result: Result) => {
      if (!this.#unanswered.has(settle)) return
      cancel()
      onExit(result)
    }
    this.#unanswered.add(settle)
    const cancelTimeout = this.#process.after(commandTimeoutMillis, () => settle(failed("TimedOut")))
    const connection = this.#connections
    this.#server.process.after(latencyMillis, () => {
      const result = this.#server.eval(script, keys, args)
      this.#server.process.after(latencyMillis, () => {
        if (this.#isConnected && this.#connections === connection) this.#process.run(() => settle(result))
      })
    })
    return { cancel }
  }

  #subscribe(subscription: Subscription): void {
    subscription.stop = this.#server.subscribe(subscription.channel, (signal) =>
      this.#server.process.after(latencyMillis, () => this.#process.run(() => subscription.onSignal(signal)))
    )
  }

  readonly driver: RedisDriver.RedisDriver["Service"] = {
    eval: RedisDriver.evalOf((script, keys, args, onExit) => this.#send(script, keys, args, onExit)),
    subscribe: RedisDriver.subscribeOf((channel, onSignal) => {
      const subscription: Subscription = { channel, onSignal, stop: () => {} }
      this.#subscriptions.add(subscription)
      if (this.#isConnected) this.#subscribe(subscription)
      return {
        cancel: () => {
          this.#subscriptions.delete(subscription)
          subscription.stop()
        }
      }
    }),
    scan: () => Stream.empty,
    publish: "PUBLISH",
    sharesSubscriptions: true,
    slot: () => 0,
    server: () => String(this.#connections),
    commandTimeoutMillis,
    reconnects: Stream.callback<void>((queue) =>
      Effect.acquireRelease(
        Effect.sync(() => {
          const listener = () => void Queue.offerUnsafe(queue, undefined)
          this.#reconnected.add(listener)
          return listener
        }),
        (listener) => Effect.sync(() => this.#reconnected.delete(listener))
      )
    )
  }
}

const failed = (reason: "ConnectionLost" | "NotConnected" | "TimedOut"): Result =>
  Exit.fail(new RedisDriver.RedisDriverError({ reason, cause: new Error("the network") }))
