import { Effect, Exit, Layer, ManagedRuntime, Scope } from "effect"
import {
  type AcknowledgeOptions,
  FairLock,
  Lock,
  MultiLock,
  ReadWriteLock,
  type RedisDriver,
  RedisLock,
  Semaphore
} from "effect-redis-lock"
import { type Kind, namesOf, permits, type Session, type Step, type Worker } from "../Candidate.ts"

const stepping = (step: Step | undefined): Effect.Effect<void> =>
  step === undefined ? Effect.void : Effect.callback<void>((resume) => step(() => resume(Effect.void)))

/** Makes a value once per name, as an application would. */
const once = <A>(make: (name: string) => A): ((name: string) => A) => {
  const made = new Map<string, A>()
  return (name) => {
    let value = made.get(name)
    if (value === undefined) made.set(name, (value = make(name)))
    return value
  }
}

/** Runs a section under the kind of lock that a worker wants, by name. */
const guarding = (
  kind: Kind,
  section: Effect.Effect<void>
): ((name: string) => Effect.Effect<void, unknown, RedisLock.RedisLock>) => {
  switch (kind) {
    case "lock":
    case "red":
      return (name) => Lock.withLock(section, name)
    case "fair":
      return once((name) => Lock.withLock(section, FairLock.make(name)))
    case "read":
      return once((name) => Lock.withLock(section, ReadWriteLock.make(name).readLock))
    case "write":
      return once((name) => Lock.withLock(section, ReadWriteLock.make(name).writeLock))
    case "semaphore":
      return once((name) => Semaphore.withPermits(section, Semaphore.make(name, { permits }), 1))
    case "multi":
      return (name) => Lock.withLock(section, MultiLock.make(namesOf(name).map((name) => Lock.make(name))))
  }
}

const work = (worker: Worker) =>
  Effect.gen(function* () {
    const guarded = guarding(worker.kind, stepping(worker.section))
    const think = stepping(worker.think)
    for (let name = worker.next(); name !== undefined; name = worker.next()) {
      yield* guarded(name)
      if (worker.think !== undefined) yield* think
    }
  })

/** Our library over one driver, or over several as a quorum, set up once: one Effect program per worker. */
export const effectSession = async <E>(
  driver: Layer.Layer<RedisDriver.RedisDriver, E>,
  leaseMillis: number,
  others: ReadonlyArray<Layer.Layer<RedisDriver.RedisDriver, E>> = [],
  acknowledge?: AcknowledgeOptions
): Promise<Session> => {
  const locksOver = (driver: Layer.Layer<RedisDriver.RedisDriver, E>) =>
    Layer.provide(RedisLock.layer({ watchdogLeaseTime: leaseMillis, acknowledge }), driver)
  const runtime = ManagedRuntime.make(
    others.length === 0 ? locksOver(driver) : RedisLock.layerQuorum([driver, ...others].map(locksOver))
  )
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
    hold: async (names, kind) => {
      // parallel, as the other libraries release all at once too
      const scope = Scope.makeUnsafe("parallel")
      const holdings = await runtime.runPromise(
        Scope.provide(
          Effect.forEach(names, (name) => Lock.scoped(kind === "fair" ? FairLock.make(name) : name), {
            concurrency: "unbounded"
          }),
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
