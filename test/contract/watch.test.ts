/**
 * `Lock.watch` tells the same on memory and on Redis.
 */
import { assert } from "@effect/vitest"
import { Effect, Layer, Queue, Stream } from "effect"
import { InvalidLockOptions, Lock, PermitSemaphore, RedisLock } from "effect-redis-lock"
import { background } from "../kit/background.ts"
import { freshName } from "../kit/names.ts"
import { pass } from "../kit/passTime.ts"
import { stores } from "../kit/stores.ts"
import { test, testInMemory, testsWith } from "../kit/test.ts"
import { as, clientOf, testStore } from "../kit/testStore.ts"
import { wrappedStore } from "../kit/wrappedStore.ts"

for (const [title, store] of Object.entries(stores)) {
  const test = testsWith(RedisLock.layerFromStore().pipe(Layer.provide(store)))

  test(`${title}: watch tells of the locks that are held, and then of each change until the lock is released`, function* () {
    const name = freshName("watch")
    const changes = yield* Queue.unbounded<string>()
    const first = yield* Lock.scoped(`${name}:a`, { leaseTime: "1 minute" })
    yield* Lock.watch(`${name}:*`, { interval: "20 millis" }).pipe(
      Stream.runForEach(({ _tag, state }) => {
        const [holder] = state.holders
        return Queue.offer(changes, `${_tag} ${state.name.slice(name.length + 1)} ${holder!.holdCount}`)
      }),
      Effect.forkScoped
    )
    const next = Queue.take(changes)
    assert.strictEqual(yield* next, "Found a 1")
    yield* first.renew("1 hour")
    assert.strictEqual(yield* next, "Renewed a 1")
    const second = yield* Lock.scoped(`${name}:b`, { leaseTime: "1 minute" })
    assert.strictEqual(yield* next, "Acquired b 1")
    yield* second.release
    assert.strictEqual(yield* next, "Released b 1")
    yield* Lock.forceRelease(`${name}:a`)
    assert.strictEqual(yield* next, "Released a 1")
  })

  test(`${title}: watch tells of semaphores whose leased permits are held, and of each permit`, function* () {
    const name = freshName("watch")
    const changes = yield* Queue.unbounded<string>()
    const semaphore = PermitSemaphore.make(name, { permits: 3 })
    const first = yield* PermitSemaphore.scoped(semaphore, { leaseTime: "1 minute" })
    yield* Lock.watch(`${name}*`, { interval: "20 millis" }).pipe(
      Stream.runForEach(({ _tag, state }) => Queue.offer(changes, `${_tag} ${state.kind} ${state.held}`)),
      Effect.forkScoped
    )
    const next = Queue.take(changes)
    assert.strictEqual(yield* next, "Found permit semaphore 1")
    const second = yield* PermitSemaphore.scoped(semaphore, { leaseTime: "1 minute" })
    assert.strictEqual(yield* next, "Changed permit semaphore 2")
    yield* first.renew("1 hour")
    assert.strictEqual(yield* next, "Renewed permit semaphore 2")
    yield* first.release
    assert.strictEqual(yield* next, "Changed permit semaphore 1")
    yield* second.release
    assert.strictEqual(yield* next, "Released permit semaphore 1")
  })
}

testInMemory("list, list and watch refuse a pattern that no name could match, before they ask Redis", function* () {
  const wrong: ReadonlyArray<unknown> = [7, null, Symbol("a"), {}, "x".repeat(1025), "a\0", "\ud800"]
  for (const pattern of wrong as ReadonlyArray<string>) {
    for (const looking of [Lock.list(pattern), Lock.list(pattern), Lock.watch(pattern)]) {
      const error = yield* Effect.flip(Stream.runDrain<unknown, unknown, RedisLock.RedisLock>(looking))
      assert.instanceOf(error, InvalidLockOptions)
      assert.strictEqual(error.option, "pattern")
    }
  }
})

testInMemory("watch refuses an interval that is no period", function* () {
  const error = yield* Effect.flip(Stream.runDrain(Lock.watch("*", { interval: 0 })))
  assert.instanceOf(error, InvalidLockOptions)
})

test("A look that takes long does not make watch report leases as renewed", function* () {
  const server = yield* testStore()
  let lateMillis = 0
  const store = wrappedStore(server.store, ({ operation, run }) =>
    operation === "lock/look" ? Effect.tap(run(), () => Effect.sleep(lateMillis)) : run()
  )
  const use = as(yield* clientOf({ store }))
  yield* background(use(Lock.withLock(Effect.never, "a", { leaseTime: "1 hour" })))
  yield* pass(1)
  const changes: Array<string> = []
  const watching = Stream.runForEach(Lock.watch("*", { interval: "1 second" }), ({ _tag }) =>
    Effect.sync(() => void changes.push(_tag))
  )
  yield* background(use(watching))
  yield* pass(4)
  lateMillis = 700
  yield* pass(4)
  lateMillis = 0
  yield* pass(4)
  assert.deepStrictEqual(changes, ["Found"])
})
