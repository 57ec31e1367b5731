/**
 * Time that passes only when it is told to, and processes that live in it, each of which can be stopped and killed as an operating system
 * does. Everything is decided by a seed, so that a run can be repeated.
 */
import { Clock, Duration, Effect, Scheduler } from "effect"

/** A generator of numbers from 0 to 1, the same for the same seed (mulberry32). */
export const randomOf = (seed: number) => () => {
  seed = (seed + 0x6d2b79f5) | 0
  let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed)
  mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
}

/** A clock that shows these times, and sleeps by them. */
export const clockOf = ({
  after,
  monotonicMillis,
  wallMillis
}: {
  readonly wallMillis: () => number
  readonly monotonicMillis: () => number
  /** Calls back after the given milliseconds; the result cancels it. */
  readonly after: (millis: number, run: () => void) => () => void
}): Clock.Clock => {
  const wallNanos = () => BigInt(Math.round(wallMillis())) * 1_000_000n
  const monotonicNanos = () => BigInt(Math.round(monotonicMillis() * 1e6))
  return {
    currentTimeMillisUnsafe: wallMillis,
    currentTimeNanosUnsafe: wallNanos,
    monotonicTimeNanosUnsafe: monotonicNanos,
    currentTimeMillis: Effect.sync(wallMillis),
    currentTimeNanos: Effect.sync(wallNanos),
    monotonicTimeNanos: Effect.sync(monotonicNanos),
    sleep: (duration) => {
      const millis = Duration.toMillis(duration)
      return millis === Number.POSITIVE_INFINITY
        ? Effect.never
        : Effect.callback<void>((resume) => {
            const cancel = after(millis, () => resume(Effect.void))
            return Effect.sync(cancel)
          })
    }
  }
}

/** What the engine of Chromium and Node.js has. */
interface V8Error {
  stackTraceLimit: number
}

interface Timer {
  readonly at: number
  readonly run: () => void
}

/** What the servers' wall clocks show when a run begins. */
const epoch = Date.UTC(2026, 0, 1)

export class VirtualTime {
  /** Milliseconds since the run began. */
  now = 0
  readonly #seed: number
  readonly #uuidDigits: () => number
  /** What is due first comes last. */
  readonly #timers: Array<Timer> = []
  /** What is to run before any time passes. */
  readonly #soon: Array<() => void> = []
  /** What is to run as soon as the code that runs now has ended. */
  readonly #microtasks: Array<() => void> = []
  /** The process whose code runs. */
  #current: Process | undefined

  constructor(seed: number) {
    this.#seed = seed
    this.#uuidDigits = randomOf(~seed)
  }

  after(millis: number, run: () => void): void {
    const timer = { at: this.now + Math.max(0, millis), run }
    let place = this.#timers.length
    while (place > 0 && this.#timers[place - 1]!.at <= timer.at) place--
    this.#timers.splice(place, 0, timer)
  }

  soon(run: () => void): void {
    this.#soon.push(run)
  }

  /** Runs the code of a process. */
  runAs(process: Process, task: () => void): void {
    this.#current = process
    task()
  }

  /** Lets time pass, and runs everything that falls due. Whoever runs anything at all in this time does so here. */
  advanceTo(to: number): void {
    this.#instead(() => {
      this.#settle()
      for (let next = this.#timers.at(-1); next !== undefined && next.at <= to; next = this.#timers.at(-1)) {
        this.#timers.pop()
        this.now = next.at
        next.run()
        this.#settle()
      }
      this.now = Math.max(this.now, to)
    })
  }

  #settle(): void {
    const next = () => this.#microtasks.shift() ?? this.#soon.shift()
    for (let task = next(); task !== undefined; task = next()) task()
  }

  /** What code gets meanwhile in place of the platform's own timers and chance. */
  #instead(run: () => void): void {
    const { queueMicrotask, setTimeout } = globalThis
    const { random } = Math
    const { crypto } = globalThis
    const { stackTraceLimit } = Error as unknown as V8Error
    const inProcess = (task: () => void) => {
      const process = this.#current!
      return () => process.run(task)
    }
    globalThis.queueMicrotask = (task) => void this.#microtasks.push(inProcess(task))
    globalThis.setTimeout = ((task: () => void, millis = 0) =>
      this.after(millis, inProcess(task))) as unknown as typeof setTimeout
    // the same throughout an instant: how often code asks, some of it once in the life of the page, makes no difference
    Math.random = () => randomOf(this.#seed ^ Math.imul(Math.round(this.now), 0x9e3779b1))()
    crypto.randomUUID = this.#uuid
    // errors are values here, and their stack traces would cost more than everything else
    ;(Error as unknown as V8Error).stackTraceLimit = 0
    try {
      run()
    } finally {
      ;(Error as unknown as V8Error).stackTraceLimit = stackTraceLimit
      Reflect.deleteProperty(crypto, "randomUUID")
      Math.random = random
      globalThis.setTimeout = setTimeout
      globalThis.queueMicrotask = queueMicrotask
    }
  }

  readonly #uuid = () => {
    const hex = (digits: number) =>
      Math.floor(this.#uuidDigits() * 16 ** digits)
        .toString(16)
        .padStart(digits, "0")
    return `${hex(8)}-${hex(4)}-${hex(4)}-${hex(4)}-${hex(12)}` as const
  }
}

/** A process: while it is stopped none of its code runs, and what falls due or arrives meanwhile waits for it. */
export class Process {
  readonly time: VirtualTime
  #isStopped = false
  #isDead = false
  readonly #held: Array<() => void> = []

  constructor(time: VirtualTime) {
    this.time = time
  }

  run(task: () => void): void {
    if (this.#isDead) return
    if (this.#isStopped) this.#held.push(task)
    else this.time.runAs(this, task)
  }

  stop(): void {
    this.#isStopped = true
  }

  resume(): void {
    this.#isStopped = false
    for (const task of this.#held.splice(0)) this.time.soon(() => this.run(task))
  }

  kill(): void {
    this.#isDead = true
    this.#held.length = 0
  }

  /** Calls back after the given milliseconds; the result cancels it. */
  after(millis: number, task: () => void): () => void {
    let isCancelled = false
    this.time.after(millis, () => this.run(() => isCancelled || task()))
    return () => {
      isCancelled = true
    }
  }

  /** Starts a program of this process. */
  start<A, E>(program: Effect.Effect<A, E>): void {
    this.time.soon(() =>
      this.run(
        () =>
          void Effect.runFork(Effect.provideService(program, Clock.Clock, this.clock), { scheduler: this.scheduler })
      )
    )
  }

  readonly scheduler: Scheduler.Scheduler = new Scheduler.MixedScheduler("async", (task) => {
    let isCancelled = false
    this.time.soon(() => this.run(() => isCancelled || task()))
    return () => {
      isCancelled = true
    }
  })

  readonly clock: Clock.Clock = clockOf({
    wallMillis: () => epoch + this.time.now,
    monotonicMillis: () => this.time.now,
    after: (millis, task) => this.after(millis, task)
  })
}
