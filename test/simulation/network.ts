/**
 * Servers in memory behind a network that is slow, loses requests and replies, and delivers some after the connection they
 * were sent on. Everything happens in virtual time as a seed has it, so that a failure can be repeated.
 */
import { Deferred, Effect, Scope, Stream } from "effect"
import type { LockStore, LockStoreError, RedisDriver, StoreReason } from "effect-redis-lock"
import { memoryStore, unreachable } from "../compose/stores.ts"

type Store = LockStore.LockStore["Service"]

/** Numbers from 0 to 1, the same ones for the same seed (mulberry32). */
export const randomOf = (seed: number) => () => {
  seed = (seed + 0x6d2b79f5) | 0
  let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed)
  mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
}

export type Random = ReturnType<typeof randomOf>

export const between = (random: Random, least: number, most: number) =>
  Math.floor(least + random() * (most - least + 1))

/** Opens when something is over. */
class Gate {
  #open = Deferred.makeUnsafe<void>()
  isShut = false

  shut(): void {
    if (this.isShut) return
    this.isShut = true
    this.#open = Deferred.makeUnsafe()
  }

  open(): void {
    this.isShut = false
    Deferred.doneUnsafe(this.#open, Effect.void)
  }

  readonly passed = Effect.suspend(() => (this.isShut ? Deferred.await(this.#open) : Effect.void))
}

/** Takes note of what happens. */
export type Trace = (event: string) => Effect.Effect<void>

/** A server; its clock is ahead by some milliseconds. */
export class Server {
  isDown = false
  store: Store
  readonly #stopped = new Gate()
  readonly #empty: Effect.Effect<Store>
  readonly #trace: Trace
  readonly #connections = new Set<Connection>()

  private constructor(store: Store, empty: Effect.Effect<Store>, trace: Trace) {
    this.store = store
    this.#empty = empty
    this.#trace = trace
  }

  static readonly make = Effect.fnUntraced(function* (skewMillis: number, trace: Trace) {
    const empty = Scope.provide(memoryStore(skewMillis), yield* Effect.scope)
    return new Server(yield* empty, empty, trace)
  })

  connect(connection: Connection): void {
    this.#connections.add(connection)
  }

  /** Unless it is stopped: then when it goes on. It may be down by then. */
  readonly run = (
    ...[operation, keys, args]: Parameters<Store["run"]>
  ): Effect.Effect<RedisDriver.Reply, LockStoreError> =>
    Effect.andThen(
      this.#stopped.passed,
      Effect.suspend(() =>
        this.isDown
          ? Effect.never
          : Effect.tap(this.store.run(operation, keys, args), (reply) =>
              this.#trace(`${operation} ${keys[0]} ${args.join(" ")} -> ${JSON.stringify(reply)}`)
            )
      )
    )

  get stop(): Effect.Effect<void> {
    return Effect.andThen(
      this.#trace("stopped"),
      Effect.sync(() => this.#stopped.shut())
    )
  }

  get resume(): Effect.Effect<void> {
    return Effect.andThen(
      this.#trace("goes on"),
      Effect.sync(() => this.#stopped.open())
    )
  }

  get crash(): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.isDown = true
      for (const connection of this.#connections) connection.break()
      return this.#trace("crashed")
    })
  }

  restart(withData: boolean): Effect.Effect<void> {
    return Effect.flatMap(withData ? Effect.succeed(this.store) : this.#empty, (store) => {
      this.store = store
      this.isDown = false
      return this.#trace(withData ? "restarted" : "restarted without its data")
    })
  }

  get heal(): Effect.Effect<void> {
    return Effect.andThen(
      this.resume,
      Effect.suspend(() => (this.isDown ? this.restart(true) : Effect.void))
    )
  }
}

export interface Faults {
  /** How long a request or a reply usually takes, at most; some take ten times as long. */
  readonly latencyMillis: number
  /** How many of all requests, replies and messages are lost, and the connection with them. */
  readonly loss: number
}

const reliable: Faults = { latencyMillis: 1, loss: 0 }

/** One client's connection to a server: in order, as long as it holds. */
export class Connection {
  isCut = false
  faults: Faults
  readonly #server: Server
  readonly #random: Random
  readonly #commandTimeoutMillis: number
  readonly #scope: Scope.Scope
  /** Who waits for a reply. */
  #pending = new Set<() => void>()
  #last: Effect.Effect<void> = Effect.void
  #broken = Deferred.makeUnsafe<never, LockStoreError>()

  constructor(server: Server, random: Random, faults: Faults, commandTimeoutMillis: number, scope: Scope.Scope) {
    this.#server = server
    this.#random = random
    this.faults = faults
    this.#commandTimeoutMillis = commandTimeoutMillis
    this.#scope = scope
    server.connect(this)
  }

  heal(): void {
    this.isCut = false
    this.faults = reliable
  }

  /** Nobody hears any more of what is under way; some of it arrives all the same, later. */
  break(): void {
    this.#last = Effect.void
    const pending = this.#pending
    this.#pending = new Set()
    for (const fail of pending) fail()
    Deferred.doneUnsafe(this.#broken, Effect.fail(unreachable("subscribe", "", "ConnectionLost")))
    this.#broken = Deferred.makeUnsafe()
  }

  cut(): void {
    this.isCut = true
    this.break()
  }

  #latency(): number {
    const { latencyMillis } = this.faults
    return between(this.#random, 0, this.#random() < 0.05 ? 10 * latencyMillis : latencyMillis)
  }

  #isLost(): boolean {
    return this.#random() < this.faults.loss
  }

  #unreachable(): boolean {
    return this.isCut || this.#server.isDown
  }

  get store(): Store {
    return {
      ...this.#server.store,
      runUnsafe: undefined,
      subscribeUnsafe: undefined,
      run: (operation, keys, args) =>
        Effect.suspend(() => {
          if (this.#unreachable()) return Effect.fail(unreachable(operation, keys[0]!, "NotConnected"))
          return this.#send(this.#server.run(operation, keys, args), (reason) =>
            unreachable(operation, keys[0]!, reason)
          )
        }),
      subscribe: (channel) =>
        Stream.suspend(() =>
          this.#unreachable()
            ? Stream.fail(unreachable("subscribe", channel, "NotConnected"))
            : this.#server.store.subscribe(channel).pipe(
                Stream.filterEffect((signal) =>
                  Effect.as(Effect.sleep(this.#latency()), signal._tag === "Subscribed" || !this.#isLost())
                ),
                Stream.interruptWhen(Deferred.await(this.#broken))
              )
        )
    }
  }

  /** From here on a request is under way, whatever becomes of who sent it. */
  #send<A>(
    execute: Effect.Effect<A, LockStoreError>,
    failed: (reason: StoreReason) => LockStoreError
  ): Effect.Effect<A, LockStoreError> {
    return Effect.uninterruptibleMask((restore) => {
      const reply = Deferred.makeUnsafe<A, LockStoreError>()
      const breaks = () => void Deferred.doneUnsafe(reply, Effect.fail(failed("ConnectionLost")))
      const arrived = Deferred.makeUnsafe<void>()
      const previous = this.#last
      this.#last = Deferred.await(arrived)
      this.#pending.add(breaks)
      const connection = this.#broken
      const isRequestLost = this.#isLost()
      const isReplyLost = this.#isLost()
      // what a broken connection still delivers, it delivers out of order
      const straggles = this.#random() < 0.5 ? this.#latency() * 20 : undefined
      const delivered = Effect.gen({ self: this }, function* () {
        yield* Effect.sleep(this.#latency())
        if (isRequestLost) {
          if (connection === this.#broken) this.break()
        } else {
          yield* Effect.raceFirst(previous, Effect.ignore(Deferred.await(connection)))
        }
        if (connection !== this.#broken) {
          if (straggles === undefined) return
          yield* Effect.sleep(straggles)
        }
        if (this.#server.isDown) return
        const exit = yield* Effect.exit(execute)
        Deferred.doneUnsafe(arrived, Effect.void)
        if (isReplyLost) {
          if (connection === this.#broken) this.break()
          return
        }
        yield* Effect.sleep(this.#latency())
        this.#pending.delete(breaks)
        Deferred.doneUnsafe(reply, exit)
      })
      return Effect.andThen(
        Effect.forkIn(
          Effect.interruptible(Effect.ensuring(delivered, Deferred.succeed(arrived, undefined))),
          this.#scope,
          {
            startImmediately: true
          }
        ),
        restore(
          Effect.timeoutOrElse(Deferred.await(reply), {
            duration: this.#commandTimeoutMillis,
            orElse: () => Effect.fail(failed("TimedOut"))
          })
        )
      )
    })
  }
}
