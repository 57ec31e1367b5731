import { assert, it } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { FairLock, Lock, LockStore, RedisLock } from "effect-redis-lock"
import { wrappedStoreLayer } from "../kit/wrappedStore.ts"
import { observedStore, waiterSleeps } from "../kit/observedStore.ts"

/** Whose next release gets no reply. */
let unanswered: string | undefined

const losesReply = wrappedStoreLayer((request) => {
  if (request.operation !== "fair_lock/release" || request.args[0] !== unanswered) return request.run()
  unanswered = undefined
  return Effect.andThen(request.run(), request.fail("TimedOut", new Error("the reply did not come")))
}).pipe(Layer.provide(LockStore.layerMemory))

const clients = RedisLock.layerFromStore()

it.live("An owner of a fair lock is not used again while a repeated release of it may still be under way", () =>
  Effect.gen(function* () {
    const lock = FairLock.make("turn")
    const gate = yield* Layer.build(Layer.fresh(clients))
    const owners: Array<string> = []
    const section = Effect.gen(function* () {
      const { owner } = yield* Lock.currentHolding(lock)
      owners.push(owner)
      if (owners.length === 2) unanswered = owner
    }).pipe(Lock.withLock(lock))
    // each waits, so that its channel is heard
    for (let i = 1; i <= 3; i++) {
      const holding = yield* Lock.scoped(lock).pipe(Lock.withOwner, Effect.provideContext(gate))
      const waiter = yield* Effect.forkChild(section, { startImmediately: true })
      yield* waiterSleeps
      yield* holding.release
      yield* Fiber.join(waiter)
    }
    // one that was released for sure is not used again either
    assert.strictEqual(new Set(owners).size, 3, owners.join(", "))
    assert.isUndefined(unanswered)
  }).pipe(Effect.scoped, Effect.provide(Layer.provideMerge(clients, observedStore(losesReply))))
)
