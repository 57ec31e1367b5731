/**
 * Sections that last until a test ends them, and that tell how they fared.
 */
import { Deferred, Effect, type Exit, Fiber, Schedule } from "effect"
import { type AcquireError, type Holding, Lock, type LockLost } from "effect-redis-lock"
import type { Client } from "./clients.ts"
import { soon } from "./eventually.ts"

/** A section that lasts until it is interrupted or told to end. */
export interface Section {
  readonly holding: Holding
  /** Whether its body was interrupted. */
  readonly wasInterrupted: () => boolean
  /** Ends the body, which then succeeds with "done". */
  readonly end: Effect.Effect<void>
  /** Waits for the outcome. */
  readonly exit: Effect.Effect<Exit.Exit<string, AcquireError | LockLost>>
}

export interface SectionOptions extends Lock.AcquireOptions {
  /** The body does not notice a loss, like a long query that runs to its end. */
  readonly deaf?: boolean
  /** Tries again where Redis could not be asked but may be soon. */
  readonly persistent?: boolean
}

const persistently = <A, R>(self: Effect.Effect<A, AcquireError | LockLost, R>) =>
  Effect.retry(self, {
    while: (error) => error._tag === "LockStoreError" && error.isTransient,
    schedule: Schedule.spaced(50)
  })

/** Forks a section that waits for the lock; the inner effect completes when it is in. */
export const queueUp = Effect.fnUntraced(function* (who: Client, lock: string, options: SectionOptions = {}) {
  const held = yield* Deferred.make<Holding>()
  const told = yield* Deferred.make<void>()
  let interrupted = false
  const body = Effect.gen(function* () {
    yield* Deferred.succeed(held, yield* Effect.orDie(Lock.currentHolding(lock)))
    yield* Deferred.await(told)
    return "done"
  }).pipe(
    Effect.onInterrupt(() => Effect.sync(() => (interrupted = true))),
    options.deaf === true ? Effect.uninterruptible : (self) => self
  )
  const fiber = yield* body.pipe(
    Lock.withLock(lock, options),
    options.persistent === true ? persistently : (self) => self,
    who.run,
    Effect.forkScoped({ startImmediately: true })
  )
  // a deaf body would keep the scope from closing
  yield* Effect.addFinalizer(() => Deferred.succeed(told, undefined))
  const entered = Effect.map(
    Effect.raceFirst(Deferred.await(held), Effect.andThen(Fiber.join(fiber), Effect.never)),
    (holding): Section => ({
      holding,
      wasInterrupted: () => interrupted,
      end: Effect.asVoid(Deferred.succeed(told, undefined)),
      exit: soon(`the section under lock "${lock}" ends`, Fiber.await(fiber))
    })
  )
  return { entered: soon(`lock "${lock}" is acquired`, entered), fiber }
})

/** Forks a section and waits until it has the lock. */
export const enter = (who: Client, lock: string, options?: SectionOptions) =>
  Effect.flatMap(queueUp(who, lock, options), ({ entered }) => entered)
