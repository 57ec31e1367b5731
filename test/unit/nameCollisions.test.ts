/**
 * Redisson derives the keys of a name by adding a text in front of or behind it. No two names that this library takes share a
 * key without Redis noticing.
 */
import { assert, it } from "@effect/vitest"
import { Arbitrary, Effect, Layer, Option, Schema } from "effect"
import {
  CountDownLatch,
  FairLock,
  FencedLock,
  InvalidLockName,
  Lock,
  LockStore,
  MultiLock,
  NonReentrantLock,
  PermitSemaphore,
  ReadWriteLock,
  RedisLock,
  Semaphore
} from "effect-redis-lock"
import { checkCollision, grantMarker, LockKeys, permitIds } from "../../packages/core/dist/internal/store/keys.js"
import { as, clientOf, quorumOf, testStore, testStores } from "../kit/testStore.ts"
import { noting, wrappedStoreLayer } from "../kit/wrappedStore.ts"
import { test, testInMemory } from "../kit/test.ts"

const owner = `${"0".repeat(8)}-0000-4000-8000-${"0".repeat(12)}:1`

/** Every key that some kind may write under a name, and as which types. */
const keysOf = (name: string): ReadonlyArray<readonly [key: string, types: ReadonlyArray<string>]> => {
  const keys = new LockKeys(name)
  return [
    [name, ["hash", "string"]],
    [keys.token, ["string"]],
    [keys.queue, ["list"]],
    [keys.timeouts, ["zset"]],
    [keys.clients, ["zset"]],
    [keys.places, ["zset"]],
    [keys.readHold(owner), ["string"]],
    [permitIds(name), ["zset"]],
    [grantMarker(name, owner), ["string"]]
  ]
}

const isTaken = (name: string): boolean => checkCollision(name, name) === undefined

const part = Schema.Literals(["a", "b", "{", "}", ":", "{a}", "timeout", ":timeout", ""])
const shape = Schema.Struct({
  before: Schema.Literals(["", "", "", "redisson_lock_token:", "redisson_lock_queue:", "redisson_lock_timeout:"]),
  ours: Schema.Literals(["", "", "", "effect_redis_lock_clients:", "effect_redis_lock_grant:"]),
  parts: Schema.Array(part).check(Schema.isMinLength(1), Schema.isMaxLength(4)),
  after: Schema.Literals(["", "", `:${owner}`, `:${owner}:rwlock_timeout:1`])
})
const nameOf = ({ after, before, ours, parts }: (typeof shape)["Type"]): string =>
  before + ours + parts.join("") + after

it.prop(
  "No two accepted names share a key of the same type, even among random names that look like keys",
  [Arbitrary.array(Arbitrary.schema(shape), { minLength: 40, maxLength: 60 })],
  ([shapes]) => {
    const users = new Map<string, string>()
    for (const name of shapes.map(nameOf)) {
      if (name === "" || !isTaken(name)) continue
      // Redis notices a key of another type
      for (const use of keysOf(name).flatMap(([key, types]) => types.map((type) => `${type} ${key}`))) {
        assert.strictEqual(users.get(use) ?? name, name, use)
        users.set(use, name)
      }
    }
  },
  { arbitrary: { runs: 40, size: 60 } }
)

it("Ordinary names are accepted, even those that only resemble a key", () => {
  for (const name of [
    "a",
    "order:{42}",
    "{order}:42",
    "{order}:timeout",
    "a{b",
    "{a}{b}",
    "{a",
    "a}",
    "{}",
    "timeout",
    "redisson_lock_token",
    "redisson_lock_token:a",
    "redisson_lock_migration",
    "redisson_lock__channel:{a}",
    "rwlock_timeout:1"
  ]) {
    assert.isTrue(isTaken(name), name)
  }
})

const commands = { count: 0 }
const counting = wrappedStoreLayer(noting(() => commands.count++)).pipe(Layer.provide(LockStore.layerMemory))

const uses: Record<string, (name: string) => Effect.Effect<unknown, unknown, RedisLock.RedisLock>> = {
  Lock: (name) => Lock.withLock(Effect.void, name),
  "Lock.isLocked": (name) => Lock.isLocked(name),
  FairLock: (name) => Lock.withLock(Effect.void, FairLock.make(name)),
  FencedLock: (name) => Lock.withLock(Effect.void, FencedLock.make(name)),
  NonReentrantLock: (name) => Lock.withLock(Effect.void, NonReentrantLock.make(name)),
  readLock: (name) => Lock.withLock(Effect.void, ReadWriteLock.make(name).readLock),
  MultiLock: (name) => Lock.withLock(Effect.void, MultiLock.make([Lock.make("other"), Lock.make(name)])),
  Semaphore: (name) => Semaphore.withPermits(Effect.void, Semaphore.make(name, { permits: 1 }), 1),
  PermitSemaphore: (name) => PermitSemaphore.withPermit(Effect.void, PermitSemaphore.make(name, { permits: 1 })),
  "PermitSemaphore.totalPermits": (name) => PermitSemaphore.totalPermits(name),
  CountDownLatch: (name) => CountDownLatch.count(name)
}

for (const [title, use] of Object.entries(uses)) {
  it.effect(
    `A name that maps onto another name's keys is refused before any command, with the other name: ${title}`,
    () =>
      Effect.gen(function* () {
        for (const [name, said] of [
          ["{a}", `as from "a"`],
          ["{a}b}", `as from "a}b"`],
          ["redisson_lock_token:{a}", `a key of the name "a"`],
          ["redisson_lock_queue:{a}:b", `a key of the name "{a}:b"`],
          ["redisson_lock_timeout:a{b", `a key of the name "a{b"`],
          ["effect_redis_lock_writers:{a}", "keys of this library"],
          [`a:${owner}:rwlock_timeout:1`, "a reader's hold"]
        ] as const) {
          const before = commands.count
          const error = yield* Effect.flip(use(name))
          assert.instanceOf(error, InvalidLockName)
          assert.include((error as InvalidLockName).message, said)
          assert.strictEqual(commands.count, before)
        }
      }).pipe(Effect.provide(Layer.provide(RedisLock.layerFromStore(), counting)))
  )
}

test("A name is checked for collisions together with the client's prefix", function* () {
  const prefixed = (keyPrefix: string) => Layer.provide(RedisLock.layerFromStore({ keyPrefix }), LockStore.layerMemory)
  yield* Effect.provide(Lock.withLock(Effect.void, "{a}"), prefixed("app:"))
  yield* Effect.provide(Lock.withLock(Effect.void, "redisson_lock_token:{a}"), prefixed("app:"))
  for (const [keyPrefix, name] of [
    ["{", "a}"],
    ["redisson_lock_token:", "{a}"]
  ] as const) {
    const error = yield* Effect.flip(Effect.provide(Lock.withLock(Effect.void, name), prefixed(keyPrefix)))
    assert.instanceOf(error, InvalidLockName)
  }
})

test("The section of a quorum's lock that was overwritten at a majority of the servers fails with LockLost", function* () {
  const servers = yield* testStores(3)
  const overwrite = Effect.forEach(servers.slice(1), (server) =>
    Effect.flatMap(clientOf(server), (client) =>
      as(client)(Effect.andThen(Lock.forceRelease("a"), Semaphore.trySetPermits("a", 3)))
    )
  )
  const error = yield* Effect.flip(as(yield* quorumOf(servers))(Lock.withLock(overwrite, "a")))
  assert.deepInclude(error, { _tag: "LockLost", lock: "a", reason: "NotOwner" })
})

for (const [what, lock] of Object.entries({
  "a lock": Lock.make("a"),
  "a re-entry": Lock.make("a"),
  "a fair lock": FairLock.make("a"),
  "a reader": ReadWriteLock.make("a").readLock,
  "a writer": ReadWriteLock.make("a").writeLock,
  "a MultiLock": Lock.make("a")
})) {
  test(`The section of ${what} whose key was overwritten fails with LockLost, and leaves what is there`, function* () {
    const server = yield* testStore()
    const [run, others] = [as(yield* clientOf(server, { label: "" })), as(yield* clientOf(server))]
    const overwrite = others(Effect.andThen(Lock.forceRelease(lock), Semaphore.trySetPermits("a", 3)))
    const section =
      what === "a re-entry"
        ? Lock.withLock(Lock.withLock(overwrite, lock), lock)
        : Lock.withLock(overwrite, what === "a MultiLock" ? MultiLock.make(["b", "a"]) : lock)
    const error = yield* Effect.flip(run(section))
    assert.deepInclude(error, { _tag: "LockLost", lock: "a", reason: "NotOwner" })
    assert.strictEqual(yield* run(Semaphore.availablePermits("a")), 3)
  })
}

testInMemory("A lock whose name is the key of another semaphore's leases is refused by its type", function* () {
  const semaphore = PermitSemaphore.make("a", { permits: 1 })
  const error = yield* Effect.flip(PermitSemaphore.withPermit(Lock.withLock(Effect.void, "{a}:timeout"), semaphore))
  assert.strictEqual(error._tag === "LockStoreError" ? error.reason : error._tag, "WrongType")
  const other = yield* Effect.flip(Lock.withLock(PermitSemaphore.withPermit(Effect.void, semaphore), "{a}:timeout"))
  assert.strictEqual(other._tag === "LockStoreError" ? other.reason : other._tag, "WrongType")
  assert.isTrue(Option.isSome(yield* PermitSemaphore.withPermitIfAvailable(Effect.void, semaphore)))
})
