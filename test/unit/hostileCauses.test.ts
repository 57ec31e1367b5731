/**
 * Errors whose cause is not what a cause usually is: drivers, proxies and applications throw anything.
 */
import { assert, describe, it } from "@effect/vitest"
import { Cause, Console, Duration, Effect, Logger } from "effect"
import { LockLost, LockStoreError, RedisDriver } from "effect-redis-lock"
import { inspect } from "node:util"

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

/** What the loggers print of an error. */
const logged = (error: Error) =>
  Effect.gen(function* () {
    const lines: Array<string> = []
    const print = (...args: ReadonlyArray<unknown>) => lines.push(...args.map((arg) => inspect(arg)))
    const console: Console.Console = Object.create(globalThis.console, {
      log: { value: print },
      error: { value: print }
    })
    yield* Effect.logWarning("went wrong", error).pipe(
      Effect.provide(Logger.layer([Logger.consoleJson])),
      Effect.provideService(Console.Console, console)
    )
    return lines.join("\n")
  })

for (const [tag, make] of Object.entries(makers)) {
  describe(tag, () => {
    for (const [title, cause] of Object.entries(causes)) {
      // the schemas themselves cannot construct an error from it
      if (title === "a revoked proxy") continue
      it.effect(`${tag} has a message, a text and a JSON although its cause is ${title}`, () =>
        Effect.gen(function* () {
          const error = make(cause)
          assert.match(error.message, tag === "RedisDriverError" ? /^Failed: ./ : /^Lock "ledger"./)
          assert.isBelow(error.message.length, 3000)
          assert.include(String(error), error.message)
          const json = JSON.parse(JSON.stringify(error)) as Record<string, unknown>
          assert.strictEqual(json["_tag"], tag)
          assert.strictEqual(json["message"], error.message)
          assert.isBelow(JSON.stringify(error).length, 20_000)
          assert.include(yield* logged(error), tag)
        })
      )
    }
  })
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
}

for (const [title, cause] of Object.entries(causes)) {
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
