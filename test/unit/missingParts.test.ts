/**
 * What the fast path needs of ioredis' inside, looked for in an ioredis that lacks some of it.
 */
import { assert, it } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import { Command, Redis, SentinelConnector } from "ioredis"
import { vi } from "vitest"
import { testLive } from "../kit/test.ts"

/** Takes something away from ioredis until the scope closes. */
const without = (prototype: object, name: string, instead?: unknown): Effect.Effect<void, never, Scope.Scope> =>
  Effect.asVoid(
    Effect.acquireRelease(
      Effect.sync(() => {
        const target = prototype as Record<string, unknown>
        const before = target[name]
        target[name] = instead
        return () => {
          target[name] = before
          // what was found out without it
          vi.resetModules()
        }
      }),
      (restore) => Effect.sync(restore)
    )
  )

/** As a process would find it that starts now. */
const missingParts = Effect.promise(async () => {
  vi.resetModules()
  const { missingParts } = await import("../../packages/ioredis/dist/internal/fast/missingParts.js")
  return missingParts()
})

testLive("nothing that the fast path needs is missing in ioredis 6", function* () {
  assert.deepStrictEqual(yield* missingParts, [])
})

it.live.each([
  ["Command.initPromise", Command.prototype],
  ["Command.toWritable", Command.prototype],
  ["Command.setTimeout", Command.prototype],
  ["Command.setReplyContext", Command.prototype],
  ["SentinelConnector.connectToSentinel", SentinelConnector.prototype]
] as const)("the fast path is told by name that %s is missing", ([part, prototype]) =>
  Effect.gen(function* () {
    yield* without(prototype, part.split(".")[1]!)
    const missing = yield* missingParts
    assert.lengthOf(missing, 1)
    assert.include(missing[0], part)
  }).pipe(Effect.scoped)
)

testLive("the fast path is told that ioredis does not write a command at once", function* () {
  const { sendCommand } = Redis.prototype
  yield* without(Redis.prototype, "sendCommand", async function (this: Redis, ...args: Parameters<typeof sendCommand>) {
    await undefined
    return sendCommand.apply(this, args)
  })
  assert.deepStrictEqual(yield* missingParts, [
    "Redis.sendCommand, which writes what Command.toWritable gives, at once"
  ])
})

testLive("the fast path is told that a command is settled otherwise than by its methods", function* () {
  const { sendCommand } = Redis.prototype
  yield* without(Redis.prototype, "sendCommand", function (this: Redis, ...args: Parameters<typeof sendCommand>) {
    const result = sendCommand.apply(this, args)
    args[0].resolve = () => {}
    return result
  })
  assert.deepStrictEqual(yield* missingParts, ["Command.resolve, which is given the reply"])
})

testLive("the fast path is told that an error does not reach its command", function* () {
  const { sendCommand } = Redis.prototype
  yield* without(Redis.prototype, "sendCommand", function (this: Redis, ...args: Parameters<typeof sendCommand>) {
    const result = sendCommand.apply(this, args)
    args[0].reject = () => {}
    return result
  })
  assert.deepStrictEqual(yield* missingParts, ["Command.reject, which is given the error"])
})
