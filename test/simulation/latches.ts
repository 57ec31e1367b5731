/**
 * Latches in a world: a coordinator sets a count, others count down once each, and no waiter goes on before that many have begun
 * to count down.
 */
import { Effect, Exit, Fiber, Option, type Scope } from "effect"
import { CountDownLatch, type LockStoreError, type RedisLock } from "effect-redis-lock"
import { between, type Random } from "./network.ts"

const name = "latch"
const rounds = 4

/** How long a command of a round may still take effect after its end: for its command timeout, and a little more. */
const pauseMillis = 3000

/** Failures before anything was sent. */
const notSent: ReadonlySet<string> = new Set(["NotConnected"])

type As = <A, E>(effect: Effect.Effect<A, E, RedisLock.RedisLock>) => Effect.Effect<A, E>

/** Asks until there is an answer. */
const untilAnswered = <A, E extends { readonly _tag: string }>(
  ask: Effect.Effect<A, E>,
  random: Random
): Effect.Effect<A> =>
  Effect.suspend(() =>
    Effect.matchEffect(ask, {
      onSuccess: Effect.succeed,
      onFailure: () => Effect.andThen(Effect.sleep(between(random, 5, 100)), untilAnswered(ask, random))
    })
  )

export const playLatches = (
  clients: ReadonlyArray<As>,
  random: Random,
  note: (event: string) => void,
  fail: (problem: string) => Effect.Effect<never>,
  /** How many commands have taken effect later than their senders waited for them, as a clock had been set back. */
  lateCommands: () => number
): Effect.Effect<number, never, Scope.Scope> =>
  Effect.gen(function* () {
    const anyone = () => clients[between(random, 0, clients.length - 1)]!
    let released = 0
    // such a command may set the latch again, or count it down, for a round that is over, until the latch is deleted
    let lateBefore = 0
    const wasDisturbed = () => lateCommands() > lateBefore
    const remove: Effect.Effect<unknown> = Effect.suspend(() => {
      lateBefore = lateCommands()
      let failures = 0
      const once = Effect.tapError(anyone()(CountDownLatch.delete(name)), () => Effect.sync(() => failures++))
      // an attempt that failed may still remove what the next round sets
      return Effect.andThen(untilAnswered(once, random), () =>
        failures === 0 ? Effect.void : Effect.andThen(Effect.sleep(pauseMillis), remove)
      )
    })
    for (let round = 1; round <= rounds; round++) {
      const count = between(random, 1, 6)
      let begun = 0
      let unknown = 0
      let isDeleted = false
      while (wasDisturbed()) yield* remove
      yield* untilAnswered(anyone()(CountDownLatch.trySetCount(name, count)), random)
      note(`round ${round}: a count of ${count} is set`)

      const waiter = Effect.gen(function* () {
        const as = anyone()
        yield* Effect.sleep(between(random, 0, 500))
        while (true) {
          const waitTime = [0, 300, 3000, undefined][between(random, 0, 3)]
          const wait = as(CountDownLatch.await(name, waitTime === undefined ? {} : { waitTime }))
          const exit = yield* Effect.exit(
            random() < 0.1 ? Effect.timeoutOption(wait, between(random, 1, 600)) : Effect.asSome(wait)
          )
          if (Exit.isSuccess(exit) && Option.isSome(exit.value)) break
          yield* Effect.sleep(between(random, 5, 100))
        }
        released++
        note(`round ${round}: somebody who waited goes on, ${begun} of ${count} have begun to count down`)
        if (begun < count && !isDeleted && !wasDisturbed())
          return yield* fail("a latch let somebody go before it was counted down")
      })

      const counter = Effect.gen(function* () {
        const as = anyone()
        yield* Effect.sleep(between(random, 0, 1500))
        begun++
        while (true) {
          const exit = yield* Effect.exit(as(CountDownLatch.countDown(name)))
          if (Exit.isSuccess(exit)) return
          const failure = Option.getOrUndefined(Exit.findErrorOption(exit)) as LockStoreError | undefined
          if (failure === undefined) return yield* exit.pipe(Effect.orDie)
          if (!notSent.has(failure.reason)) {
            unknown++
            return
          }
          yield* Effect.sleep(between(random, 5, 100))
        }
      })

      const waiters = yield* Effect.forEach(Array.from({ length: between(random, 1, 6) }), () =>
        Effect.forkScoped(waiter)
      )
      const counters = yield* Effect.forEach(Array.from({ length: count }), () => Effect.forkScoped(counter))
      yield* Fiber.joinAll(counters)
      note(`round ${round}: all have counted down, ${unknown} of them perhaps`)
      if (unknown > 0 || wasDisturbed()) {
        isDeleted = true
        yield* remove
      }
      while (Option.isNone(yield* Effect.timeoutOption(Fiber.joinAll(waiters), 60_000))) {
        if (!wasDisturbed()) return yield* fail("a latch that was counted down stays shut")
        yield* remove
      }
      // commands of this round that arrive in time must not count in the next one
      yield* Effect.sleep(pauseMillis)
      if (unknown > 0) yield* remove
    }
    return released
  })
