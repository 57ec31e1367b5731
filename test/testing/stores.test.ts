import { FailingStore, LockClients } from "@effect-redis-lock/testing"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Option } from "effect"
import { Lock, LockStore, RedisLock } from "effect-redis-lock"
import { readFileSync } from "node:fs"
import { sectionUntilTold } from "../kit/sections.ts"
import { runOperation, typeOfKeyIn } from "../kit/storeOperations.ts"
import { testsWith } from "../kit/test.ts"

const locks = RedisLock.layerFromStore().pipe(
  Layer.provideMerge(FailingStore.layer),
  Layer.provideMerge(Layer.fresh(LockStore.layerMemory))
)

const test = testsWith(locks, it.effect)

const section = Lock.withLock(Effect.succeed("done"), "ledger")

describe("the failing store", () => {
  test("A failing store fails with the reason that it was given, until it is repaired", function* () {
    const store = yield* FailingStore.FailingStore
    assert.strictEqual(yield* section, "done")
    yield* store.fail({ reason: "OutOfMemory" })
    const error = yield* Effect.flip(section)
    assert.deepInclude(error, { _tag: "LockStoreError", reason: "OutOfMemory", lock: "ledger" })
    yield* store.repair
    assert.strictEqual(yield* section, "done")
    assert.strictEqual(yield* store.failures, 1)
  })

  test("A failing store fails only the operations that are named", function* () {
    const store = yield* FailingStore.FailingStore
    yield* store.fail({ reason: "NoPermission", operations: ["lock/inspect"] })
    assert.strictEqual(yield* section, "done")
    const error = yield* Effect.flip(Lock.isLocked("ledger"))
    assert.deepInclude(error, { _tag: "LockStoreError", reason: "NoPermission" })
  })

  test("A failing store that loses the reply of an acquisition has carried it out", function* () {
    const store = yield* FailingStore.FailingStore
    const below = yield* LockStore.LockStore
    const key = ["ledger", "redisson_lock_token:{ledger}"]
    const acquire = runOperation(below, "lock/acquire", key, ["owner:1", 30_000, 60_000, "", Number.MAX_SAFE_INTEGER])
    yield* store.fail({ operations: ["lock/acquire"], carriedOut: true })
    const error = yield* Effect.flip(acquire)
    assert.deepInclude(error, { _tag: "LockStoreError", reason: "ConnectionLost", isOutcomeUnknown: true })
    assert.strictEqual(yield* typeOfKeyIn(below, "ledger"), "hash")
  })

  test("A lock whose grant a failing store has lost is rolled back", function* () {
    const store = yield* FailingStore.FailingStore
    const below = yield* LockStore.LockStore
    yield* store.fail({ operations: ["lock/acquire"], carriedOut: true })
    const error = yield* Effect.flip(Lock.withLock(Effect.void, "ledger", { waitTime: 0 }))
    assert.deepInclude(error, { _tag: "LockStoreError", reason: "ConnectionLost" })
    assert.strictEqual(yield* typeOfKeyIn(below, "ledger"), "none")
    assert.strictEqual(yield* typeOfKeyIn(below, "redisson_lock_token:{ledger}"), "string")
  })
})

describe("several clients of one store", () => {
  it.effect("Two clients of one store exclude each other, and one waits for the other", () =>
    Effect.gen(function* () {
      const [one, two] = yield* LockClients.make(2)
      const as = (client: LockClients.LockClient) => Effect.provideService(RedisLock.RedisLock, client)
      assert.notStrictEqual(one!.clientId, two!.clientId)
      const holder = yield* sectionUntilTold((body) => as(one!)(Lock.withLock(body, "ledger")))
      const attempt = Lock.withLockIfAvailable(Effect.void, "ledger").pipe(as(two!))
      assert.isTrue(Option.isNone(yield* attempt))
      const waiter = yield* section.pipe(as(two!), Effect.forkChild({ startImmediately: true }))
      yield* holder.end
      assert.strictEqual(yield* Fiber.join(waiter), "done")
    }).pipe(Effect.scoped, Effect.provide(LockStore.layerMemory))
  )
})

describe("the package for tests", () => {
  it("The package for tests depends on nothing that it could do without: Testcontainers is an optional peer", () => {
    const text = readFileSync(new URL("../../packages/testing/package.json", import.meta.url), "utf8")
    const { dependencies = {}, peerDependenciesMeta } = JSON.parse(text)
    assert.deepStrictEqual(dependencies, {})
    assert.deepStrictEqual(peerDependenciesMeta, { testcontainers: { optional: true } })
  })
})
