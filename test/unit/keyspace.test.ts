import { assert, it } from "@effect/vitest"
import { Clock, Effect, Layer, Option } from "effect"
import { Lock, LockStore, RedisLock } from "effect-redis-lock"
import { Keyspace } from "../../packages/core/dist/internal/store/memory/Keyspace.js"
import { runCommand } from "../../packages/core/dist/internal/store/memory/redisCommands.js"
import { test } from "../kit/test.ts"

test("A wall clock that is set forward ends no lease in the memory store", function* () {
  const clock = yield* Clock.Clock
  let wall = Date.UTC(2026, 0, 1)
  const stepping: Clock.Clock = Object.create(clock, { currentTimeMillisUnsafe: { value: () => wall } })
  const store = yield* Effect.provideService(Layer.build(LockStore.layerMemory), Clock.Clock, stepping)
  const client = () => Layer.provide(Layer.fresh(RedisLock.layerFromStore()), Layer.succeedContext(store))
  const first = yield* Layer.build(client())
  const holding = yield* Effect.provideContext(Lock.scoped("a"), first)
  wall += 60_000
  yield* holding.ensureHeld
  const second = yield* Effect.provide(Lock.withLockIfAvailable(Effect.void, "a"), client())
  assert.isTrue(Option.isNone(second), "a second owner while the first holds")
  wall -= 3_600_000
  yield* holding.release
  const later = yield* Effect.provide(Effect.scoped(Lock.scoped("a")), client())
  assert.isTrue(later.token > holding.token)
})

it("The memory store frees expired keys at any command, whichever key it names", () => {
  let now = 0
  const db = new Keyspace(() => now, Date.UTC(2026, 0, 1))
  for (let i = 0; i < 10_000; i++) {
    db.open(`lock ${i}`, "hash").set("owner", "1")
    db.expire(`lock ${i}`, 30_000)
    db.set(`token ${i}`, "string", "1", 86_400_000)
    now += 1
  }
  assert.strictEqual(db.size, 20_000)
  now += 40_000
  const churn = (writes: number) => {
    for (let i = 0; i < writes; i++) db.set("other", "string", "1", 1000)
  }
  churn(1000)
  assert.strictEqual(db.size, 10_001)
  now += 86_400_000
  churn(1000)
  assert.strictEqual(db.size, 1)
  now += 1001
  assert.isFalse(db.exists("other"))
  assert.strictEqual(db.size, 0)
})

it("A key that is written again has only its new expiry", () => {
  let now = 0
  const db = new Keyspace(() => now, 0)
  db.set("a", "string", "1", 1000)
  db.set("a", "string", "2")
  assert.strictEqual(db.pttl("a"), -1)
  db.expire("a", 500)
  db.expire("a", 2000)
  assert.strictEqual(runCommand(db, ["INCRBY", "a", "1"]), 3)
  now = 1999.5
  assert.strictEqual(db.pttl("a"), 1)
  now = 2000
  assert.isUndefined(db.get("a", "string"))
  runCommand(db, ["HSET", "a", "field", "1"])
  assert.strictEqual(db.pttl("a"), -1)
  assert.strictEqual(runCommand(db, ["HDEL", "a", "field"]), 1)
  assert.strictEqual(db.size, 0)
})
