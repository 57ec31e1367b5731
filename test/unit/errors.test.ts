/**
 * Errors as tools see them: grouped by their name, logged as JSON, sent over RPC.
 */
import { assert, it } from "@effect/vitest"
import { Cause, Console, Duration, Effect, Exit, Layer, Logger, Schema } from "effect"
import {
  CountDownLatch,
  InvalidLockName,
  InvalidLockOptions,
  LatchTimeout,
  Lock,
  LockLost,
  LockReentered,
  LockStore,
  LockStoreError,
  LockTimeout,
  NotLockOwner,
  PermitId,
  PermitSemaphore,
  QuorumNotReached,
  RedisDriver,
  RedisLock
} from "effect-redis-lock"

const lock = "order:42"
const cause = new Error("ECONNRESET")

const errors = {
  LockTimeout: [
    LockTimeout,
    new LockTimeout({ lock, waited: Duration.seconds(1), holder: { owner: "x:1", remaining: Duration.seconds(2) } })
  ],
  LatchTimeout: [LatchTimeout, new LatchTimeout({ latch: lock, waited: Duration.seconds(1), count: 2 })],
  LockLost: [LockLost, new LockLost({ lock, owner: "x:1", reason: "RenewalFailed", late: Duration.millis(5), cause })],
  NotLockOwner: [NotLockOwner, new NotLockOwner({ lock })],
  LockReentered: [LockReentered, new LockReentered({ lock, attempt: "upgrade" })],
  InvalidLockName: [InvalidLockName, new InvalidLockName({ lock, problem: "it is empty" })],
  InvalidLockOptions: [InvalidLockOptions, new InvalidLockOptions({ option: "leaseTime", problem: "it is negative" })],
  LockStoreError: [
    LockStoreError,
    new LockStoreError({ operation: "lock/acquire", lock, reason: "ConnectionLost", cause })
  ],
  QuorumNotReached: [
    QuorumNotReached,
    new QuorumNotReached({
      lock,
      acquired: 1,
      required: 2,
      members: 3,
      failures: [{ member: "10.0.0.1:6379", reason: "NotConnected", message: "no connection" }]
    })
  ],
  RedisDriverError: [RedisDriver.RedisDriverError, new RedisDriver.RedisDriverError({ reason: "TimedOut", cause })]
} as const

/** What a logger in JSON prints. */
const logged = (...message: ReadonlyArray<unknown>) =>
  Effect.gen(function* () {
    const lines: Array<string> = []
    const print = (...args: ReadonlyArray<unknown>) => lines.push(...args.map(String))
    const console: Console.Console = Object.create(globalThis.console, {
      log: { value: print },
      error: { value: print }
    })
    yield* Effect.logWarning(...message).pipe(
      Effect.provide(Logger.layer([Logger.consoleJson])),
      Effect.provideService(Console.Console, console)
    )
    return lines.join("\n")
  })

for (const [tag, [schema, error]] of Object.entries(errors)) {
  it.effect(`${tag} has a name of its own, whatever its lock is called, and carries its message in JSON`, () =>
    Effect.gen(function* () {
      assert.strictEqual(error.name, `effect-redis-lock/${tag}`)
      assert.strictEqual(error._tag, tag)
      const json = JSON.parse(JSON.stringify(error)) as Record<string, unknown>
      assert.strictEqual(json["message"], error.message)
      assert.strictEqual(json["_tag"], tag)
      if ("lock" in error) assert.strictEqual(json["lock"], lock)
      if (error.cause !== undefined) assert.deepStrictEqual(json["cause"], { name: "Error", message: "ECONNRESET" })
      assert.include(yield* logged("went wrong", error), JSON.stringify(error.message).slice(1, -1))
    })
  )

  it(`${tag} is the same after it was sent somewhere as its schema encodes it`, () => {
    const codec = Schema.toCodecJson(schema as unknown as Schema.Codec<Error, unknown>)
    const sent = JSON.parse(JSON.stringify(Schema.encodeSync(codec)(error))) as unknown
    const received = Schema.decodeUnknownSync(codec)(sent)
    assert.strictEqual(received.constructor, schema)
    assert.strictEqual(received.message, error.message)
    assert.strictEqual(received.name, error.name)
    assert.deepStrictEqual(Object.keys(received), Object.keys(error))
  })
}

it.effect("the loss of a thousand permits names the first of them, and how many more there are", () =>
  Effect.gen(function* () {
    const semaphore = PermitSemaphore.make("many", { permits: 1000 })
    const permit = yield* PermitSemaphore.scoped(semaphore, { permits: 1000 })
    assert.strictEqual(permit.ids.length, 1000)
    assert.isTrue(yield* PermitId.tryRelease(semaphore, permit.ids))
    const lost = yield* Effect.flip(permit.release)
    assert.instanceOf(lost, LockLost)
    assert.strictEqual((lost as LockLost).owner, `${permit.ids.slice(0, 3).join(",")} and 997 more`)
    assert.isBelow((yield* logged("gone", lost)).length, 2000)
  }).pipe(Effect.scoped, Effect.provide(Layer.provide(RedisLock.layerFromStore(), LockStore.layerMemory)))
)

it.effect("Lock.orDieIfInvalid makes defects of bad names and options, and of nothing else", () =>
  Effect.gen(function* () {
    const badName = yield* Effect.exit(Lock.orDieIfInvalid(Lock.withLock(Effect.void, "")))
    assert.isTrue(Exit.isFailure(badName) && Cause.squash(badName.cause) instanceof InvalidLockName)
    assert.isTrue(Exit.isFailure(badName) && Cause.hasDies(badName.cause))
    const badOption = yield* Effect.exit(CountDownLatch.trySetCount("a", -1).pipe(Lock.orDieIfInvalid))
    assert.isTrue(Exit.isFailure(badOption) && Cause.squash(badOption.cause) instanceof InvalidLockOptions)
    assert.isTrue(Exit.isFailure(badOption) && Cause.hasDies(badOption.cause))
    assert.strictEqual(yield* Effect.flip(Lock.orDieIfInvalid(Lock.withLock(Effect.fail("mine"), "a"))), "mine")
    assert.strictEqual(yield* Lock.orDieIfInvalid(Lock.withLock(Effect.succeed(1), "a")), 1)
  }).pipe(Effect.provide(RedisLock.layerMemory))
)
