import { assert, it } from "@effect/vitest"
import { ConfigProvider, Effect, Fiber, Layer } from "effect"
import { Lock, LockStore, RedisDriver, RedisLock } from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { hostname } from "node:os"
import { basename } from "node:path"
import { background } from "../kit/background.ts"
import { attributesOf, recordSpans } from "../kit/spans.ts"
import { as, clientOf, storeWith, testStore } from "../kit/testStore.ts"
import { test } from "../kit/test.ts"

const labelOf = (options?: RedisLock.RedisLockOptions) =>
  Effect.gen(function* () {
    const { spans, tracer } = yield* recordSpans
    yield* Lock.withLock(Effect.void, "a").pipe(
      Effect.withSpan("request"),
      Effect.withTracer(tracer),
      Effect.provide(Layer.provide(RedisLock.layerFromStore(options), LockStore.layerMemory))
    )
    return attributesOf(spans.find(({ name }) => name === "Lock.hold"))["lock.client.label"]
  })

const ownLabel = `${hostname()}/${process.pid}/${basename(process.argv[1]!)}`

test("A client without a label is called by host, pid and program", function* () {
  assert.strictEqual(yield* labelOf(), ownLabel)
  assert.strictEqual(yield* labelOf({ label: "payments" }), "payments")
  assert.strictEqual(yield* labelOf({ label: "" }), "")
})

test("A client that may not know its host, as in Deno without the permission, is called by the rest", function* () {
  const { getBuiltinModule } = process
  yield* Effect.acquireRelease(
    Effect.sync(() => {
      process.getBuiltinModule = () => {
        throw new Error(`Requires sys access to "hostname"`)
      }
    }),
    () =>
      Effect.sync(() => {
        process.getBuiltinModule = getBuiltinModule
      })
  )
  assert.strictEqual(yield* labelOf(), ownLabel.slice(ownLabel.indexOf("/") + 1))
})

it.effect("The environment names the label", () =>
  Effect.gen(function* () {
    const settings = yield* RedisLock.settings
    assert.strictEqual(settings.label, "payments")
  }).pipe(Effect.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({ REDIS_LOCK_LABEL: "payments" }))))
)

test("The label of a client that holds a lock for hours is known all the time, however slow Redis is to store it", function* () {
  const [server, holder, other] = yield* storeWith({ label: "worker-3", watchdogLeaseTime: "1 day" }, {})
  server.delay = (operation) => (operation === "client/set_label" ? 5 * 60_000 : 0)
  yield* Lock.scoped("a").pipe(as(holder))
  yield* TestClock.adjust("10 minutes")
  for (let minutes = 10; minutes < 200; minutes++) {
    const { holders } = yield* as(other)(Lock.inspect("a"))
    assert.strictEqual(holders[0]!.label, "worker-3", `after ${minutes} minutes`)
    yield* TestClock.adjust("1 minute")
  }
})

test("A label that the server refuses for now, such as when it is full, is stored later, and one that it will never store is given up", function* () {
  for (const [reason, isStored] of [
    ["OutOfMemory", true],
    ["PersistenceFailed", true],
    ["NoPermission", false]
  ] as const) {
    const store = yield* testStore()
    store.reason = reason
    store.refuses = (operation) => operation === "client/set_label"
    const client = yield* clientOf(store)
    const section = yield* Effect.never.pipe(Lock.withLock("a"), as(client), background)
    yield* TestClock.adjust("2 seconds")
    store.refuses = () => false
    yield* TestClock.adjust("2 seconds")
    assert.strictEqual(store.operations.includes("client/set_label"), isStored, reason)
    yield* Fiber.interrupt(section)
  }
})

test("A label that is no text, or longer than 256 characters, is refused", function* () {
  for (const label of [3 as unknown as string, "x".repeat(257)]) {
    const error = yield* Effect.flip(labelOf({ label }))
    assert.isTrue(error._tag === "InvalidLockOptions" && error.option === "label")
    assert.strictEqual((yield* Effect.flip(RedisDriver.connectionName(label)))._tag, "InvalidLockOptions")
  }
  assert.strictEqual(yield* labelOf({ label: "x".repeat(256) }), "x".repeat(256))
})

test("The name of a connection is its label without what CLIENT SETNAME refuses", function* () {
  assert.strictEqual(yield* RedisDriver.connectionName("the payments of\nZürich"), "the-payments-of-Z-rich")
  assert.strictEqual(yield* RedisDriver.connectionName(""), "")
  assert.strictEqual(yield* RedisDriver.connectionName(), ownLabel.replace(/[^!-~]+/g, "-"))
})
