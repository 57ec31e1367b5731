/**
 * How soon fair waiters are served behind those whose processes have died, to the millisecond: in virtual time. A real process is stopped in
 * faults/fairQueue.
 */
import { assert, it } from "@effect/vitest"
import { Deferred, Effect, type Scope, Stream } from "effect"
import { FairLock, Lock } from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { sectionUntilTold } from "../kit/sections.ts"
import { typeOfKeyIn } from "../kit/storeOperations.ts"
import { as, clientOf, memoryStore } from "../kit/testStore.ts"
import { type Store, wrappedStore } from "../kit/wrappedStore.ts"

const lock = FairLock.make("turn")

/** How long a place outlives the last report of its process, milliseconds. */
const placeLife = 1500

/** A client that dies when told to: nothing that it asks is answered, until the test is over. */
const mortal = Effect.fnUntraced(function* (store: Store, isOver: Deferred.Deferred<void>) {
  let isDead = false
  const service = yield* clientOf({
    store: {
      ...wrappedStore(store, ({ run }) =>
        Effect.suspend(() => (isDead ? Effect.as(Deferred.await(isOver), 1) : run()))
      ),
      // the server does not know yet that nobody listens
      subscribe: (channel) => Stream.filter(store.subscribe(channel), () => !isDead)
    }
  })
  return { run: as(service), die: () => (isDead = true) }
})

/** Clients of one store; the dead among them end with the test. */
const withMortals = (
  count: number,
  body: (clients: ReadonlyArray<Effect.Success<ReturnType<typeof mortal>>>) => Effect.Effect<void, unknown, Scope.Scope>
) =>
  Effect.gen(function* () {
    const store = yield* memoryStore(0)
    // loads its scripts: virtual time waits for no import
    yield* typeOfKeyIn(store, lock.name)
    const isOver = Deferred.makeUnsafe<void>()
    const clients = yield* Effect.forEach(Array.from({ length: count }), () => mortal(store, isOver))
    yield* Effect.ensuring(body(clients), Deferred.succeed(isOver, undefined))
  })

it.effect(
  "When 30 of 50 fair waiters have died, the head among them, the others are served at most as late as the dead live",
  () =>
    withMortals(6, ([holder, ...clients]) =>
      Effect.gen(function* () {
        const held = yield* sectionUntilTold((body) => holder!.run(Lock.withLock(body, lock)))
        const served: Array<number> = []
        for (let i = 0; i < 50; i++) {
          yield* Effect.sync(() => served.push(i)).pipe(
            Lock.withLock(lock),
            clients[i % 5]!.run,
            Effect.forkScoped({ startImmediately: true })
          )
          yield* TestClock.adjust(10)
        }
        const doomed = [0, 1, 3]
        for (const i of doomed) clients[i]!.die()
        yield* held.end
        // the living report every half second, the dead did so at most half a second ago
        yield* TestClock.adjust(placeLife - 501)
        assert.deepStrictEqual([...served], [])
        // at the first millisecond at which all the dead are dead
        yield* TestClock.adjust(502)
        // each hand-over takes turns of the event loop, and no time
        for (let i = 0; i < 100 && served.length < 20; i++) yield* TestClock.adjust(0)
        assert.deepStrictEqual(
          [...served],
          Array.from({ length: 50 }, (_, i) => i).filter((i) => !doomed.includes(i % 5))
        )
      })
    )
)

it.effect(
  "A fair lock that is handed over to a head that has died is the next one's as soon as that short lease is over",
  () =>
    withMortals(3, ([holder, doomed, next]) =>
      Effect.gen(function* () {
        const held = yield* sectionUntilTold((body) => holder!.run(Lock.withLock(body, lock)))
        yield* Lock.withLock(Effect.void, lock).pipe(doomed!.run, Effect.forkScoped({ startImmediately: true }))
        yield* TestClock.adjust(10)
        let isServed = false
        yield* Effect.sync(() => (isServed = true)).pipe(
          Lock.withLock(lock),
          next!.run,
          Effect.forkScoped({ startImmediately: true })
        )
        yield* TestClock.adjust(10)
        doomed!.die()
        yield* held.end
        yield* TestClock.adjust(placeLife - 10)
        assert.isFalse(isServed)
        yield* TestClock.adjust(20)
        assert.isTrue(isServed)
      })
    )
)
