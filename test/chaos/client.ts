/**
 * A client process of a chaos run: fibers that enter sections until they are told to finish, and tell the judge over IPC what
 * they do and believe. Run as `node dist/chaos/client.js '<settings>'` with an IPC channel.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { Cause, Duration, Effect, Exit, Layer, References, Schedule } from "effect"
import { FairLock, type Holding, Lock, RedisLock } from "effect-redis-lock"
import { type ClientEvent, type ClientSettings, finish, type Kind, lockOf, now } from "./events.ts"

const kinds: Record<Kind, (name: string) => Lock.Lock> = {
  fair: (name) => FairLock.make(name),
  plain: (name) => Lock.make(name)
}

const TICK_MILLIS = 50
const STALL_MILLIS = 250

const run = async (settings: ClientSettings) => {
  const tell = (event: ClientEvent) => void process.send!(event)
  let finishing = false
  process.on("message", (message) => {
    if (message === finish) finishing = true
  })
  // the judge is gone
  process.on("disconnect", () => process.exit(1))

  let ticked = now()
  const ticks = setInterval(() => {
    const at = now()
    if (at - ticked > STALL_MILLIS) tell({ event: "stalled", at, since: ticked })
    ticked = at
  }, TICK_MILLIS)

  let sections = 0
  const inside = (fiber: string, kind: Kind, asked: number, holding: Holding) =>
    Effect.gen(function* () {
      const report = (event: "enters" | "stays" | "leaves") =>
        Effect.gen(function* () {
          // before the check: it may be stopped in between, and holds what it finds held later
          const at = now()
          const until = at + Duration.toMillis(yield* holding.remaining)
          if (!settings.broken) yield* holding.ensureHeld
          const { owner, token } = holding
          const believes = settings.broken ? Number.MAX_VALUE : until
          tell({ event, at, until: believes, asked, fiber, kind, owner, token: String(token) })
        })
      yield* report("enters")
      const isLong = ++sections % 16 === 0 && !finishing
      const ends = now() + (isLong ? settings.longWork : settings.work)
      while (now() < ends) {
        yield* Effect.sleep(Math.min(10, settings.work))
        yield* report("stays")
      }
      yield* report("leaves")
    })

  const options = settings.leaseTime === undefined ? {} : { leaseTime: settings.leaseTime }
  const section = (fiber: string, kind: Kind) =>
    Effect.suspend(() => {
      const asked = now()
      tell({ event: "asks", at: asked, fiber, kind })
      const lock = kinds[kind](lockOf(kind))
      const body = settings.broken
        ? Effect.scoped(Effect.flatMap(Lock.scoped(lock, options), (holding) => inside(fiber, kind, asked, holding)))
        : Effect.flatMap(Lock.currentHolding(lock), (holding) => inside(fiber, kind, asked, holding)).pipe(
            Lock.withLock(lock, options)
          )
      return Effect.onExit(Effect.result(body), (exit) =>
        Effect.sync(() => {
          const outcome = Exit.isFailure(exit)
            ? Cause.pretty(exit.cause)
            : exit.value._tag === "Success"
              ? "done"
              : `${exit.value.failure._tag}: ${exit.value.failure.message}`
          tell({ event: "ended", at: now(), fiber, kind, outcome })
        })
      )
    })

  const fiber = (kind: Kind, name: string) =>
    Effect.gen(function* () {
      while (true) {
        // what is asked for after that is the last
        const last = finishing
        const result = yield* section(name, kind)
        if (last && result._tag === "Success") return
        yield* Effect.sleep(result._tag === "Success" ? settings.pause : 50)
      }
    })

  const program = Effect.gen(function* () {
    const { clientId } = yield* RedisLock.RedisLock
    tell({ event: "ready", at: now(), clientId })
    yield* Effect.forEach(
      settings.kinds.flatMap((kind) =>
        Array.from({ length: settings.fibers }, (_, i) => [kind, `${kind}-${i}`] as const)
      ),
      ([kind, name]) => fiber(kind, name),
      { concurrency: "unbounded", discard: true }
    )
  })
  const layer = RedisLock.layer({ watchdogLeaseTime: settings.watchdogLeaseTime, fallbackInterval: "500 millis" }).pipe(
    Layer.provide(
      IoRedis.layer({ url: settings.url, commandTimeout: "1 second", ioredis: { retryStrategy: () => 50 } })
    )
  )
  const exit = await Effect.runPromiseExit(
    Effect.scoped(
      Effect.gen(function* () {
        // a layer wants a server that answers
        const context = yield* Effect.retry(Layer.build(layer), Schedule.spaced("50 millis"))
        yield* Effect.provideContext(program, context)
      })
    ).pipe(Effect.provideService(References.MinimumLogLevel, "None"))
  )
  clearInterval(ticks)
  tell(
    Exit.isSuccess(exit) ? { event: "closed", at: now() } : { event: "broke", at: now(), why: Cause.pretty(exit.cause) }
  )
  process.removeAllListeners("disconnect")
  process.disconnect()
}

await run(JSON.parse(process.argv[2]!) as ClientSettings)
