/**
 * Three processes, one Redis and one ledger in virtual time, and the history of what has happened to them. The seed and the faults decide
 * all of it.
 */
import { Cause, Effect, Exit, Layer, Metric, References } from "effect"
import { LockLost, RedisDriver, RedisLock } from "effect-redis-lock"
import { type Account, leaseMillis, name, withLibrary, withSetNx } from "./deposits.ts"
import { type Fault, type Letter, letters, type Run } from "./faults.ts"
import { Ledger, type LedgerReply } from "./Ledger.ts"
import { Link, Server } from "./Network.ts"
import { Process, randomOf, VirtualTime } from "./VirtualTime.ts"

export type LockKind = "library" | "set-nx"

export type State = "resting" | "waiting" | "inside"

/** A stretch of time; the last one of each kind has no end yet. */
export interface Span<A> {
  readonly from: number
  to: number | undefined
  readonly what: A
}

/** What happened to a process, or was done to it. */
export interface Happening {
  readonly at: number
  /** Absent where it happened to Redis. */
  readonly process?: Letter
  readonly kind: Fault["kind"] | "lost" | "refused" | "overwrote"
  /** How many were overwritten. */
  readonly deposits?: number
}

export class World {
  readonly time: VirtualTime
  readonly ledger: Ledger
  readonly happenings: Array<Happening> = []
  readonly members: Readonly<Record<Letter, Member>>
  /** Who has the lock as Redis sees it. */
  readonly holders: Array<Span<Letter>> = []
  readonly server: Server
  readonly #faults: ReadonlyArray<Fault>
  #nextFault = 0

  constructor(lock: LockKind, { faults, seed }: Run) {
    this.time = new VirtualTime(seed)
    this.ledger = new Ledger(this.time)
    this.server = new Server(this.time)
    this.server.onChange = () => this.#lookAtLock()
    this.#faults = faults
    const member = (letter: Letter) => new Member(this, lock, letter, randomOf(seed * 3 + letters.indexOf(letter)))
    this.members = { A: member("A"), B: member("B"), C: member("C") }
  }

  /** Lets time pass. How often it is called, and with which steps, makes no difference. */
  advanceTo(to: number): void {
    for (let fault = this.#faults[this.#nextFault]; fault !== undefined; fault = this.#faults[this.#nextFault]) {
      if (fault.at > to) break
      this.#nextFault++
      this.time.advanceTo(fault.at)
      this.#inject(fault)
    }
    this.time.advanceTo(to)
  }

  #inject(fault: Fault): void {
    this.time.soon(() => {
      if (fault.kind === "restart") this.server.restartEmpty()
      else if (!this.members[fault.process].inject(fault.kind)) return
      this.note(fault)
    })
  }

  note(happening: Happening): void {
    this.happenings.push(happening)
  }

  #lookAtLock(): void {
    const now = this.time.now
    const [owner, lifeMillis] = this.server.look(lookAt, [name]) as readonly [string, number]
    const last = this.holders.at(-1)
    const letter = letters.find((letter) =>
      this.members[letter].ownerPrefixes.some((prefix) => owner.startsWith(prefix))
    )
    // a lease that has run out has ended by itself
    if (last !== undefined && last.to! > now) {
      if (last.what === letter) {
        last.to = now + lifeMillis
        return
      }
      last.to = now
    }
    if (letter !== undefined) this.holders.push({ from: now, to: now + lifeMillis, what: letter })
  }
}

// the holder, in whichever way its lock says it, and how long its lease lasts
const lookAt = `local owner = ""
local type = redis.call("TYPE", KEYS[1]).ok
if type == "hash" then owner = redis.call("HKEYS", KEYS[1])[1] end
if type == "string" then owner = redis.call("GET", KEYS[1]) end
return { owner, redis.call("PTTL", KEYS[1]) }`

/** One of the processes: started again after it was killed, it is another process of the operating system. */
export class Member {
  readonly #world: World
  readonly #lock: LockKind
  readonly #letter: Letter
  readonly #random: () => number
  #process!: Process
  #link!: Link
  #starts = 0
  isStopped = false
  isCut = false
  isDead = false
  /** What its owner ids begin with, and those of its predecessors. */
  readonly ownerPrefixes: Array<string> = []
  readonly states: Array<Span<State>> = []
  readonly stops: Array<Span<"stopped" | "dead">> = []
  readonly cuts: Array<Span<"cut">> = []

  constructor(world: World, lock: LockKind, letter: Letter, random: () => number) {
    this.#world = world
    this.#lock = lock
    this.#letter = letter
    this.#random = random
    this.#start()
  }

  #start(): void {
    this.#process = new Process(this.#world.time)
    this.#link = new Link(this.#process, this.#world.server)
    this.#starts++
    this.#process.start(
      Effect.scoped(this.#lock === "library" ? this.#depositWithLibrary() : this.#depositWithSetNx()).pipe(
        Effect.provideService(References.MinimumLogLevel, "None"),
        Effect.provideService(Metric.MetricRegistry, new Map())
      )
    )
  }

  /** Whether it makes a difference. */
  inject(kind: Exclude<Fault["kind"], "restart">): boolean {
    switch (kind) {
      case "pause":
        if (this.isDead || this.isStopped) return false
        this.isStopped = true
        this.#process.stop()
        this.#begin(this.stops, "stopped")
        return true
      case "resume":
        if (this.isDead || !this.isStopped) return false
        this.isStopped = false
        this.#end(this.stops)
        this.#process.resume()
        return true
      case "cut":
        if (this.isDead || this.isCut) return false
        this.isCut = true
        this.#begin(this.cuts, "cut")
        this.#link.cut()
        return true
      case "mend":
        if (this.isDead || !this.isCut) return false
        this.isCut = false
        this.#end(this.cuts)
        this.#link.mend()
        return true
      case "kill":
        if (this.isDead) return false
        this.isDead = true
        this.isStopped = false
        this.isCut = false
        this.#process.kill()
        this.#link.close()
        for (const spans of [this.states, this.stops, this.cuts]) this.#end(spans)
        this.#begin(this.stops, "dead")
        return true
      case "start":
        if (!this.isDead) return false
        this.isDead = false
        this.#end(this.stops)
        this.#start()
        return true
    }
  }

  #begin<A>(spans: Array<Span<A>>, what: A): void {
    const last = spans.at(-1)
    if (last !== undefined && last.what === what && last.to === undefined) return
    this.#end(spans)
    spans.push({ from: this.#world.time.now, to: undefined, what })
  }

  #end(spans: ReadonlyArray<Span<unknown>>): void {
    const last = spans.at(-1)
    if (last !== undefined) last.to ??= this.#world.time.now
  }

  #between(least: number, most: number): number {
    return Math.floor(least + this.#random() * (most - least + 1))
  }

  #note(what: Pick<Happening, "kind" | "deposits">): void {
    this.#world.note({ at: this.#world.time.now, process: this.#letter, ...what })
  }

  #account(process: Process): Account {
    const { ledger } = this.#world
    const request = (ask: () => LedgerReply) =>
      ledger.request(process, () => {
        const { lost } = ledger
        const reply = ask()
        if (reply._tag === "StaleToken") this.#note({ kind: "refused" })
        if (ledger.lost > lost) this.#note({ kind: "overwrote", deposits: ledger.lost - lost })
        return reply
      })
    return {
      read: (token) => request(() => ledger.read(token)),
      write: (balance, token) => request(() => ledger.write(balance, token)),
      // now and then the bank is slow
      askBank: Effect.suspend(() =>
        Effect.sleep(this.#random() < 0.06 ? this.#between(4000, 6000) : this.#between(200, 900))
      ),
      inside: (section) =>
        Effect.suspend(() => {
          this.#begin(this.states, "inside")
          return Effect.ensuring(
            section,
            Effect.sync(() => this.#begin(this.states, "resting"))
          )
        })
    }
  }

  /** One deposit after another, whatever becomes of each. */
  #forever<E, R>(deposit: Effect.Effect<void, E, R>): Effect.Effect<never, never, R> {
    return Effect.gen({ self: this }, function* () {
      while (true) {
        yield* Effect.sleep(this.#between(100, 900))
        this.#begin(this.states, "waiting")
        const exit = yield* Effect.exit(deposit)
        this.#begin(this.states, "resting")
        const error: unknown = Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined
        if (error instanceof LockLost) this.#note({ kind: "lost" })
      }
    })
  }

  #depositWithLibrary() {
    const process = this.#process
    const client = RedisLock.layer({ watchdogLeaseTime: leaseMillis, label: this.#letter }).pipe(
      Layer.provide(Layer.succeed(RedisDriver.RedisDriver, this.#link.driver)),
      Layer.orDie
    )
    return Effect.gen({ self: this }, function* () {
      const service = yield* RedisLock.RedisLock
      this.ownerPrefixes.push(service.clientId)
      yield* this.#forever(withLibrary(this.#account(process)))
    }).pipe(Effect.provide(Layer.fresh(client)))
  }

  #depositWithSetNx() {
    const process = this.#process
    const { driver } = this.#link
    this.ownerPrefixes.push(`${this.#letter}:`)
    let deposits = 0
    return this.#forever(
      Effect.suspend(() => withSetNx(this.#account(process), driver, `${this.#letter}:${this.#starts}:${++deposits}`))
    )
  }
}
