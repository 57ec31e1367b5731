/**
 * The sections that a process has in a row: the lock is not free between two of them, however late the request of its next waiter comes.
 */
import { assert } from "@effect/vitest"
import { Deferred, Effect, Fiber, Option } from "effect"
import { FencedLock, Lock, MultiLock, NonReentrantLock, ReadWriteLock, type RedisLock } from "effect-redis-lock"
import { background } from "../kit/background.ts"
import { until } from "../kit/eventually.ts"
import { freshName } from "../kit/names.ts"
import { stores } from "../kit/stores.ts"
import { testLive } from "../kit/test.ts"
import { as, clientOf, storeOf } from "../kit/testStore.ts"
import { type Store, wrappedStore } from "../kit/wrappedStore.ts"

type AnyLock = Lock.Lock<RedisLock.RedisLock, any, any>

/** A lock, and what is held while its next waiter comes. */
const kinds: Readonly<Record<string, (name: string) => { readonly lock: AnyLock; readonly held?: AnyLock }>> = {
  Lock: (name) => ({ lock: Lock.make(name) }),
  FencedLock: (name) => ({ lock: FencedLock.make(name) }),
  NonReentrantLock: (name) => ({ lock: NonReentrantLock.make(name) }),
  writeLock: (name) => ({ lock: ReadWriteLock.make(name).writeLock }),
  "Lock that is a member of a MultiLock": (name) => ({
    lock: Lock.make(name),
    held: MultiLock.make([name, freshName("ownTurns")])
  })
}

/**
 * A process with a section that ends, and a fiber that waits for its end; its request is held back until `meanwhile` has happened, which
 * begins when the release has been answered.
 */
const handedOver = Effect.fnUntraced(function* (store: Store, lock: AnyLock, held: AnyLock) {
  const [released, mayAsk] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
  let isHeld = false
  const slow = wrappedStore(store, ({ operation, run }) => {
    if (operation.endsWith("/release")) return Effect.ensuring(run(), Deferred.succeed(released, undefined))
    return isHeld && operation.endsWith("/acquire") ? Effect.andThen(Deferred.await(mayAsk), run()) : run()
  })
  const service = yield* clientOf({ store: slow }, { label: "" })
  const mayEnd = yield* Deferred.make<void>()
  const first = yield* Effect.sync(() => (isHeld = true)).pipe(
    Effect.andThen(Deferred.await(mayEnd)),
    Lock.withLock(held),
    as(service),
    background
  )
  yield* until("the first section has begun", () => isHeld)
  const next = yield* Effect.succeed("served").pipe(Lock.withLock(lock), as(service), background)
  yield* Deferred.succeed(mayEnd, undefined)
  yield* Deferred.await(released)
  yield* Fiber.join(first)
  return { mayAsk: Deferred.succeed(mayAsk, undefined), next }
})

for (const [where, layer] of Object.entries(stores)) {
  for (const [title, lockOf] of Object.entries(kinds)) {
    const setUp = Effect.gen(function* () {
      const store = yield* storeOf(layer)
      const { held, lock } = lockOf(freshName("ownTurns"))
      const other = yield* clientOf({ store }, { label: "" })
      return { ...(yield* handedOver(store, lock, held ?? lock)), lock, other }
    })

    testLive(
      `${where}: no request of another process comes between two sections of one process: ${title}`,
      function* () {
        const { lock, mayAsk, next, other } = yield* setUp
        const entered = yield* Effect.void.pipe(Lock.withLockIfAvailable(lock), as(other))
        assert.isTrue(Option.isNone(entered), "the lock is free between two sections")
        yield* mayAsk
        assert.strictEqual(yield* Fiber.join(next), "served")
      }
    )

    testLive(
      `${where}: a waiter that leaves before its process has asked gives the lock to another process: ${title}`,
      function* () {
        const { lock, next, other } = yield* setUp
        const waiter = yield* Effect.succeed("served").pipe(Lock.withLock(lock), as(other), background)
        yield* Fiber.interrupt(next)
        assert.strictEqual(yield* Fiber.join(waiter), "served")
      }
    )
  }
}
