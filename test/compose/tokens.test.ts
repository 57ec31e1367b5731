/**
 * Fencing tokens of a quorum whose servers' clocks differ: every grant's is higher than those of all before, whichever majority
 * grants.
 */
import { assert, it } from "@effect/vitest"
import { Arbitrary, Effect, Result, Schema } from "effect"
import { FencedLock, Lock, type LockReentered, ReadWriteLock, type RedisLock } from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { as, quorumOf, testStore, type TestStore } from "../kit/testStore.ts"
import { runOperation, typeOfKeyIn } from "../kit/storeOperations.ts"
import { test } from "../kit/test.ts"

const year2026 = Date.UTC(2026, 0, 1)
const hour = 3_600_000

const { readLock, writeLock } = ReadWriteLock.make("rw")

const locks = { plain: Lock.make("a"), fenced: FencedLock.make("b"), write: writeLock, read: readLock }

const grant = (lock: Lock.Lock<RedisLock.RedisLock, LockReentered>) =>
  Effect.map(Lock.currentHolding(lock), ({ token }) => token).pipe(Lock.withLock(lock, { waitTime: 0 }))

/** Those of these numbers answer, the others do not. */
const onlyAnswer = (stores: ReadonlyArray<TestStore>, members: ReadonlyArray<number>) => {
  stores.forEach((store, i) => (store.isDown = !members.includes(i + 1)))
}

test("A grant of a quorum counts only if a majority has its token on record", function* () {
  yield* TestClock.setTime(year2026)
  const stores = yield* Effect.forEach([hour, 0, 0], (skew) => testStore(skew))
  const service = yield* quorumOf(stores)
  stores[1]!.isDown = true
  stores[2]!.refuses = (operation) => operation === "lock/raise_token"
  const error = yield* Effect.flip(as(service)(grant(locks.plain)))
  assert.strictEqual(error._tag, "LockStoreError")
  for (const store of stores) assert.isTrue(yield* store.isFree("a"))
  stores[2]!.refuses = () => false
  const token = yield* as(service)(grant(locks.plain))
  // now the two others, which are an hour behind, must know
  onlyAnswer(stores, [2, 3])
  assert.isTrue((yield* as(service)(grant(locks.plain))) > token)
})

test("A lock without tokens is granted by a quorum at once, and no member remembers anything", function* () {
  yield* TestClock.setTime(year2026)
  const stores = yield* Effect.forEach([hour, 0, -hour], (skew) => testStore(skew))
  const service = yield* quorumOf(stores)
  const both = ReadWriteLock.make("rw", { tokens: "none" })
  for (const lock of [Lock.make("a", { tokens: "none" }), both.writeLock, both.readLock]) {
    const holding = yield* as(service)(Effect.scoped(Lock.scoped(lock, { waitTime: 0 })))
    assert.isUndefined((holding as unknown as { readonly token: unknown }).token)
  }
  for (const { operations, store } of stores) {
    assert.notInclude(operations, "lock/raise_token")
    for (const name of ["a", "rw"]) {
      assert.strictEqual(yield* typeOfKeyIn(store, `redisson_lock_token:{${name}}`), "none")
    }
  }
})

test("Tokens of a quorum's readers are higher than those of all earlier writers, even forgotten ones", function* () {
  yield* TestClock.setTime(year2026)
  const stores = yield* Effect.forEach([hour, 0, -hour], (skew) => testStore(skew))
  const service = yield* quorumOf(stores)
  const written = yield* as(service)(grant(writeLock))
  yield* TestClock.adjust("25 hours")
  onlyAnswer(stores, [2, 3])
  const read = yield* as(service)(grant(readLock))
  assert.isTrue(read > written)
  for (const members of [
    [1, 2],
    [1, 3],
    [2, 3]
  ]) {
    onlyAnswer(stores, members)
    assert.isTrue((yield* as(yield* quorumOf(stores))(grant(writeLock))) > read)
    assert.isTrue((yield* as(service)(grant(readLock))) >= read)
  }
})

test("Tokens of a quorum's readers are on record too, so the next writer's is higher", function* () {
  yield* TestClock.setTime(year2026)
  const stores = yield* Effect.forEach([0, 0, hour], (skew) => testStore(skew))
  const service = yield* quorumOf(stores)
  onlyAnswer(stores, [1, 2])
  const first = yield* as(service)(grant(writeLock))
  // one member grants, which is no grant: but it remembers a token that nobody else knows
  onlyAnswer(stores, [1, 2, 3])
  for (const store of stores.slice(0, 2)) store.refuses = (operation) => operation === "write_lock/acquire"
  yield* Effect.flip(as(service)(grant(writeLock)))
  for (const store of stores) store.refuses = () => false
  onlyAnswer(stores, [2, 3])
  const read = yield* as(service)(grant(readLock))
  assert.isTrue(read >= first)
  onlyAnswer(stores, [1, 2])
  assert.strictEqual(yield* as(service)(grant(readLock)), read)
  assert.isTrue((yield* as(yield* quorumOf(stores))(grant(writeLock))) > read)
})

test("A writer that reads on a quorum keeps its token, whatever a member has granted too late", function* () {
  yield* TestClock.setTime(year2026)
  const stores = yield* Effect.forEach([0, 0, hour], (skew) => testStore(skew))
  const service = yield* quorumOf(stores)
  stores[2]!.delay = (operation) => (operation === "write_lock/acquire" ? 10 : 0)
  const written = yield* Effect.gen(function* () {
    const { token } = yield* Lock.currentHolding(writeLock)
    yield* TestClock.adjust(10)
    assert.isTrue(stores[2]!.operations.includes("write_lock/acquire"))
    onlyAnswer(stores, [2, 3])
    assert.strictEqual(yield* grant(readLock), token)
    // and now one that has forgotten the writer, but not its own token
    yield* runOperation(stores[2]!.store, "write_lock/force_release", ["rw", "silent", "holds", "readers"], ["PUBLISH"])
    assert.strictEqual(yield* grant(readLock), token)
    onlyAnswer(stores, [1, 2, 3])
    return token
  }).pipe(Lock.withLock(writeLock), as(service))
  assert.isTrue((yield* as(service)(grant(writeLock))) > written)
})

test("A grant of a quorum needs one round trip only, if the clocks agree or have been seen", function* () {
  yield* TestClock.setTime(year2026)
  const stores = yield* Effect.forEach([0, 20, 400], (skew) => testStore(skew))
  const service = yield* quorumOf(stores)
  for (let i = 0; i < 5; i++) {
    yield* as(service)(grant(Lock.make(`name ${i}`)))
    yield* TestClock.adjust("1 minute")
  }
  const raised = stores[0]!.operations.filter((operation) => operation === "lock/raise_token").length
  assert.strictEqual(raised, 1)
})

test("A grant of a quorum needs one round trip only, however long its members take", function* () {
  yield* TestClock.setTime(year2026)
  const stores = yield* Effect.forEach([0, 0, 0], (skew) => testStore(skew))
  stores.forEach((store, i) => (store.delay = (operation) => (operation === "lock/acquire" ? 30 + 5 * i : 0)))
  const service = yield* quorumOf(stores)
  for (let i = 0; i < 5; i++) {
    const granted = yield* Effect.forkChild(as(service)(grant(Lock.make(`name ${i}`))))
    while (granted.pollUnsafe() === undefined) yield* TestClock.adjust(5)
    yield* TestClock.adjust("1 minute")
  }
  const raised = stores[0]!.operations.filter((operation) => operation === "lock/raise_token").length
  assert.strictEqual(raised, 1)
})

const Step = Schema.Struct({
  client: Schema.Literals([0, 1]),
  kind: Schema.Literals(["plain", "fenced", "write", "read"]),
  /** Which members answer, as bits: any set, majority or not. */
  up: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 31 })),
  /** Milliseconds until the next. */
  pause: Schema.Literals([0, 1, 50, 10_000])
})
const Skew = Schema.Int.check(Schema.isBetween({ minimum: -2 * hour, maximum: 2 * hour }))

it.effect.prop(
  "Tokens of a quorum rise whatever the clocks say and whichever members answer",
  {
    skews: Arbitrary.array(Arbitrary.schema(Skew), { minLength: 5, maxLength: 5 }),
    steps: Arbitrary.array(Arbitrary.schema(Step), { minLength: 20, maxLength: 40 })
  },
  ({ skews, steps }) =>
    Effect.gen(function* () {
      yield* TestClock.setTime(year2026)
      const stores = yield* Effect.forEach([0, 1, 2, 3, 4], (i) => testStore(skews[i]))
      const clients = [yield* quorumOf(stores), yield* quorumOf(stores)]
      const last = new Map<string, bigint>()
      for (const { client, kind, pause, up } of steps) {
        const lock = locks[kind]
        stores.forEach((store, i) => (store.isDown = ((up >> i) & 1) === 0))
        const asked = yield* Effect.forkChild(Effect.result(as(clients[client]!)(grant(lock))))
        // what could not be told of a release or an undo is told by and by
        while (asked.pollUnsafe() === undefined) yield* TestClock.adjust(100)
        const result = yield* asked.pollUnsafe()!
        const members = stores.filter(({ isDown }) => !isDown).length
        if (members < 3) assert.isTrue(Result.isFailure(result), "a minority has granted")
        if (Result.isSuccess(result)) {
          const token = result.success
          const before = last.get(lock.name) ?? 0n
          assert.isTrue(kind === "read" ? token >= before : token > before, `${kind}: ${token} after ${before}`)
          last.set(lock.name, token)
        }
        yield* TestClock.adjust(pause)
      }
      // a client that closes waits, in real time, until what it takes back is told
      for (const store of stores) store.isDown = false
      yield* TestClock.adjust("1 minute")
    }),
  { arbitrary: { runs: 60 } }
)
