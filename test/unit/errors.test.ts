/**
 * Errors as tools see them: grouped by their name, logged as JSON, sent over RPC.
 */
import { assert, it } from "@effect/vitest"
import { inspect } from "node:util"
import { Cause, Console, Duration, Effect, Exit, Fiber, Logger, Schema } from "effect"
import {
  CountDownLatch,
  InvalidLockName,
  InvalidLockOptions,
  LatchTimeout,
  Lock,
  LockLost,
  LockReentered,
  LockStoreError,
  LockTimeout,
  NotLockOwner,
  PermitId,
  PermitSemaphore,
  QuorumNotReached,
  RedisDriver,
  type RedisLock,
  Semaphore
} from "effect-redis-lock"
import { background } from "../kit/background.ts"
import { pass } from "../kit/passTime.ts"
import { test, testInMemory } from "../kit/test.ts"
import { as, clientOf, testStore } from "../kit/testStore.ts"

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
  test(`${tag} has a name of its own, whatever its lock is called, and carries its message in JSON`, function* () {
    assert.strictEqual(error.name, `effect-redis-lock/${tag}`)
    assert.strictEqual(error._tag, tag)
    const json = JSON.parse(JSON.stringify(error)) as Record<string, unknown>
    assert.strictEqual(json["message"], error.message)
    assert.strictEqual(json["_tag"], tag)
    if ("lock" in error) assert.strictEqual(json["lock"], lock)
    if (error.cause !== undefined) assert.deepStrictEqual(json["cause"], { name: "Error", message: "ECONNRESET" })
    assert.include(yield* logged("went wrong", error), JSON.stringify(error.message).slice(1, -1))
  })

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

testInMemory("the loss of a thousand permits names the first of them, and how many more there are", function* () {
  const semaphore = PermitSemaphore.make("many", { permits: 1000 })
  const permit = yield* PermitSemaphore.scoped(semaphore, { permits: 1000 })
  assert.strictEqual(permit.ids.length, 1000)
  assert.isTrue(yield* PermitId.tryRelease(semaphore, permit.ids))
  const lost = yield* Effect.flip(permit.release)
  assert.instanceOf(lost, LockLost)
  assert.strictEqual((lost as LockLost).owner, `${permit.ids.slice(0, 3).join(",")} and 997 more`)
  assert.isBelow((yield* logged("gone", lost)).length, 2000)
})

test("The message of a LockStoreError says whether a lock, a semaphore or a latch has its name", function* () {
  const server = yield* testStore()
  const use = as(yield* clientOf(server))
  const startOf = <E>(self: Effect.Effect<unknown, E, RedisLock.RedisLock>) =>
    Effect.gen(function* () {
      const failed = yield* background(Effect.flip(use(self)))
      // what has failed is rolled back or repeated for as long as this
      yield* pass(6)
      const error = yield* Fiber.join(failed)
      return error instanceof LockStoreError ? error.message.split(",")[0] : error
    })
  const permits = PermitSemaphore.make("seats", { permits: 2 })
  server.refuses = () => true
  assert.strictEqual(yield* startOf(Lock.withLock(Effect.void, "a", { waitTime: 0 })), 'Lock "a"')
  assert.strictEqual(
    yield* startOf(Semaphore.withPermits(Effect.void, "doors", 1, { waitTime: 0 })),
    'Semaphore "doors"'
  )
  assert.strictEqual(
    yield* startOf(PermitSemaphore.withPermit(Effect.void, permits, { waitTime: 0 })),
    'Semaphore "seats"'
  )
  assert.strictEqual(yield* startOf(CountDownLatch.count("gate")), 'Latch "gate"')
  server.refuses = (operation) => operation.endsWith("/release")
  const section = PermitSemaphore.withPermit(Effect.void, permits)
  assert.strictEqual(yield* startOf(section), 'Semaphore "seats" (the work is done)')
  const unconfirmed = new LockStoreError({ operation: "grant/confirm", lock: "seats", reason: "TimedOut" })
  assert.match(unconfirmed.message, /^Grant of "seats", /)
  server.refuses = () => false
  yield* pass(2)
})

testInMemory("Lock.orDieIfInvalid makes defects of bad names and options, and of nothing else", function* () {
  const badName = yield* Effect.exit(Lock.orDieIfInvalid(Lock.withLock(Effect.void, "")))
  assert.isTrue(Exit.isFailure(badName) && Cause.squash(badName.cause) instanceof InvalidLockName)
  assert.isTrue(Exit.isFailure(badName) && Cause.hasDies(badName.cause))
  const badOption = yield* Effect.exit(CountDownLatch.trySetCount("a", -1).pipe(Lock.orDieIfInvalid))
  assert.isTrue(Exit.isFailure(badOption) && Cause.squash(badOption.cause) instanceof InvalidLockOptions)
  assert.isTrue(Exit.isFailure(badOption) && Cause.hasDies(badOption.cause))
  assert.strictEqual(yield* Effect.flip(Lock.orDieIfInvalid(Lock.withLock(Effect.fail("mine"), "a"))), "mine")
  assert.strictEqual(yield* Lock.orDieIfInvalid(Lock.withLock(Effect.succeed(1), "a")), 1)
})

// Errors whose cause is not what a cause usually is: drivers, proxies and applications throw anything.

const refuse = (): never => {
  throw new Error("not to be looked at")
}

const circular: Record<string, unknown> = { code: "E1" }
circular["self"] = circular

const circularError = new Error("went round")
circularError.cause = circularError

const everyTrap = Object.fromEntries(
  Object.getOwnPropertyNames(Reflect).map((trap) => [trap, refuse])
) as ProxyHandler<object>

const revoked = () => {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}

/** What was thrown, by what it is. */
const causes: Record<string, unknown> = {
  "an object without a prototype": Object.assign(Object.create(null), { code: "E1" }),
  "an object whose toString throws": { toString: refuse },
  "an object that cannot be made a string": { toString: () => ({}), valueOf: () => ({}) },
  "an object whose toJSON throws": { toJSON: refuse },
  "an object with a getter that throws": Object.defineProperty({}, "code", { enumerable: true, get: refuse }),
  "an error whose message throws": Object.defineProperty(new Error("a"), "message", { get: refuse }),
  "an error whose name throws": Object.defineProperty(new Error("a"), "name", { get: refuse }),
  "an error whose message is an object": Object.assign(new Error("a"), { message: Object.create(null) as string }),
  "an error whose toJSON throws": Object.assign(new Error("a"), { toJSON: refuse }),
  "a proxy all of whose traps throw": new Proxy({}, everyTrap),
  "a proxy of an error all of whose traps throw": new Proxy(new Error("a"), everyTrap),
  "a revoked proxy": revoked(),
  "a circular object": circular,
  "a circular error": circularError,
  "an error with a huge message": new Error("x".repeat(10_000_000)),
  "a huge string": "x".repeat(10_000_000),
  "a symbol": Symbol("a"),
  "a bigint": 42n,
  "a function": refuse
}

const makers = {
  LockLost: (cause: unknown) =>
    new LockLost({ lock: "ledger", owner: "x:1", reason: "RenewalFailed", late: Duration.zero, cause }),
  LockStoreError: (cause: unknown) =>
    new LockStoreError({ operation: "lock/acquire", lock: "ledger", reason: "Failed", cause }),
  RedisDriverError: (cause: unknown) => new RedisDriver.RedisDriverError({ reason: "Failed", cause })
}

for (const [tag, make] of Object.entries(makers)) {
  for (const [title, cause] of Object.entries(causes)) {
    // the schemas themselves cannot construct an error from it
    if (title === "a revoked proxy") continue
    test(`${tag} has a message, a text and a JSON although its cause is ${title}`, function* () {
      const error = make(cause)
      assert.match(error.message, tag === "RedisDriverError" ? /^Failed: ./ : /^Lock "ledger"./)
      assert.isBelow(error.message.length, 3000)
      assert.include(String(error), error.message)
      const json = JSON.parse(JSON.stringify(error)) as Record<string, unknown>
      assert.strictEqual(json["_tag"], tag)
      assert.strictEqual(json["message"], error.message)
      assert.isBelow(JSON.stringify(error).length, 20_000)
      assert.include(yield* logged("went wrong", error), tag)
    })
  }
}

it("an error with an ordinary cause shows it in its JSON as it is", () => {
  const cause = { code: "E1", path: ["a", 1] }
  const json = JSON.parse(JSON.stringify(makers.LockStoreError(cause))) as Record<string, unknown>
  assert.deepStrictEqual(json["cause"], cause)
})

for (const [title, cause] of Object.entries(causes)) {
  it(`RedisDriver.reasonOf and isUnknownScript sort what was thrown although it is ${title}`, () => {
    assert.strictEqual(RedisDriver.reasonOf(cause), "Failed")
    assert.isFalse(RedisDriver.isUnknownScript(cause))
  })

  it(`RedisDriver.makeError makes an error that can be shown of ${title}`, () => {
    const error = RedisDriver.makeError(cause)
    assert.strictEqual(error.reason, "Failed")
    assert.match(error.message, /^Failed: ./)
    for (const shown of [error, makers.LockStoreError(error.cause), makers.LockLost(error.cause)]) {
      assert.include(Cause.pretty(Cause.fail(shown)), shown._tag)
      assert.include(inspect(shown), shown._tag)
      assert.include(JSON.stringify(shown), shown._tag)
    }
  })
}

it("RedisDriver.makeError keeps an ordinary cause as it is", () => {
  for (const cause of [new Error("ERR no"), circularError, circular, "no", 42n, { code: "E1" }]) {
    assert.strictEqual(RedisDriver.makeError(cause).cause, cause)
  }
})
