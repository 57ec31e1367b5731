import { Effect, Exit, Layer, ManagedRuntime, Scope } from "effect"
import { Lock, type RedisDriver, RedisLock } from "effect-redis-lock"
import type { Library, Session, Step, Worker } from "../Candidate.ts"

/** What our scripts call. */
export const insideScripts: Library["insideScripts"] = [
  "exists",
  "hexists",
  "hkeys",
  "hset",
  "hdel",
  "pttl",
  "pexpire",
  "time",
  "get",
  "set",
  "publish"
]

const stepping = (step: Step | undefined): Effect.Effect<void> =>
  step === undefined ? Effect.void : Effect.callback<void>((resume) => step(() => resume(Effect.void)))

const work = (worker: Worker) =>
  Effect.gen(function* () {
    const section = stepping(worker.section)
    const think = stepping(worker.think)
    for (let name = worker.next(); name !== undefined; name = worker.next()) {
      yield* Lock.withLock(section, name)
      if (worker.think !== undefined) yield* think
    }
  })

/** Our library over a driver: one Effect program per worker. */
export const effectSession = async <E>(
  driver: Layer.Layer<RedisDriver.RedisDriver, E>,
  leaseMillis: number
): Promise<Session> => {
  const runtime = ManagedRuntime.make(Layer.provide(RedisLock.layer({ watchdogLeaseTime: leaseMillis }), driver))
  await runtime.context()
  return {
    work: (worker) => runtime.runPromise(work(worker)),
    wait: (name, waiters) => {
      let failed = 0
      for (let i = 0; i < waiters; i++) {
        runtime.runFork(
          Effect.catchCause(Effect.scoped(Effect.andThen(Lock.scoped(name), Effect.never)), () =>
            Effect.sync(() => {
              failed++
            })
          )
        )
      }
      return { failed: () => failed }
    },
    hold: async (names) => {
      // parallel: the others release all at once as well
      const scope = Scope.makeUnsafe("parallel")
      const holdings = await runtime.runPromise(
        Scope.provide(
          Effect.forEach(names, (name) => Lock.scoped(name), { concurrency: "unbounded" }),
          scope
        )
      )
      return {
        lost: async () => {
          const held = await runtime.runPromise(Effect.forEach(holdings, (holding) => holding.isHeld))
          return held.filter((isHeld) => !isHeld).length
        },
        release: () => runtime.runPromise(Scope.close(scope, Exit.void))
      }
    }
  }
}
