/**
 * Sections that last until a test ends them, and that tell how they fared.
 */
import { Deferred, Effect, type Exit, Fiber, Schedule } from "effect"
import { type AcquireError, type Holding, Lock, type LockLost } from "effect-redis-lock"
import type { Client } from "./clients.ts"
import { soon } from "./eventually.ts"

/**
 * Forks `acquire`, which calls its argument with whatever it has acquired, and stays inside until told to let go or until the
 * scope closes.
 */
export const forkHolder = Effect.fnUntraced(function* <A, B, E, R>(
  acquire: (stay: (acquired: A) => Effect.Effect<void>) => Effect.Effect<B, E, R>
) {
  const held = yield* Deferred.make<A>()
  const told = yield* Deferred.make<void>()
  const letGo = Effect.asVoid(Deferred.succeed(told, undefined))
  const fiber = yield* Effect.forkScoped(
    acquire((acquired) => Effect.andThen(Deferred.succeed(held, acquired), Deferred.await(told))),
    { startImmediately: true }
  )
  // one that cannot be interrupted would keep the scope from closing
  yield* Effect.addFinalizer(() => letGo)
  return {
    fiber,
    /** Completes with what was acquired, or fails as the holder does. */
    entered: Effect.raceFirst(Deferred.await(held), Effect.andThen(Fiber.join(fiber), Effect.never)),
    letGo
  }
})

/** Forks a holder and waits until it is inside; `end` tells it to let go and waits for its result. */
export const holdUntilTold = Effect.fnUntraced(function* <A, B, E, R>(
  acquire: (stay: (acquired: A) => Effect.Effect<void>) => Effect.Effect<B, E, R>
) {
  const { entered, fiber, letGo } = yield* forkHolder(acquire)
  return { acquired: yield* entered, fiber, end: Effect.andThen(letGo, Fiber.join(fiber)) }
})

/** {@link holdUntilTold} of a section; `around` runs its argument in there. */
export const sectionUntilTold = <B, E, R>(around: (body: Effect.Effect<void>) => Effect.Effect<B, E, R>) =>
  holdUntilTold((stay: (acquired: void) => Effect.Effect<void>) => around(stay()))

/** A section that lasts until it is interrupted or told to end. */
export interface Section {
  readonly holding: Holding
  /** Whether its body was interrupted. */
  readonly wasInterrupted: () => boolean
  /** Ends the body, which then succeeds with "done". */
  readonly end: Effect.Effect<void>
  /** Ends the body, and waits for the section, which must succeed. */
  readonly finish: Effect.Effect<void, AcquireError | LockLost>
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
  let interrupted = false
  const { entered, fiber, letGo } = yield* forkHolder((stay: (holding: Holding) => Effect.Effect<void>) =>
    Effect.orDie(Lock.currentHolding(lock)).pipe(
      Effect.flatMap(stay),
      Effect.as("done"),
      Effect.onInterrupt(() => Effect.sync(() => (interrupted = true))),
      options.deaf === true ? Effect.uninterruptible : (self) => self,
      Lock.withLock(lock, options),
      options.persistent === true ? persistently : (self) => self,
      who.run
    )
  )
  const exit = soon(`the section under lock "${lock}" ends`, Fiber.await(fiber))
  const section = Effect.map(entered, (holding): Section => ({
    holding,
    wasInterrupted: () => interrupted,
    end: letGo,
    finish: Effect.asVoid(Effect.andThen(letGo, Effect.flatten(exit))),
    exit
  }))
  return { entered: soon(`lock "${lock}" is acquired`, section), fiber }
})

/** Forks a section and waits until it has the lock. */
export const enter = (who: Client, lock: string, options?: SectionOptions) =>
  Effect.flatMap(queueUp(who, lock, options), ({ entered }) => entered)
