/**
 * Drivers that share what the server reports over one connection, and end while they ask for it.
 */
import { assert } from "@effect/vitest"
import { Effect, Fiber, Stream } from "effect"
import type { RedisDriver } from "effect-redis-lock"
import type { Redis } from "ioredis"
import { invalidationsOf } from "../../packages/ioredis/dist/internal/tracking.js"
import type { Subscriber } from "../../packages/ioredis/dist/internal/subscriber.js"
import { until } from "../kit/eventually.ts"
import { testLive } from "../kit/test.ts"

const redisAt = (answer: (command: string) => Promise<unknown>) =>
  ({ status: "ready", call: (_: string, command: string) => answer(command) }) as unknown as Redis

/** A driver whose connection for subscriptions says which one it is when `id` does; `listen` is told whenever that for commands is ready. */
const driver = (
  redis: Redis | (() => Redis),
  id: Promise<number> | (() => Promise<number>),
  listen: (onReady: () => void) => { readonly close: () => void } = () => ({ close: () => {} })
) =>
  invalidationsOf({
    client: typeof redis === "function" ? redis : () => redis,
    isShared: true,
    listen,
    subscriber: {
      clientId: typeof id === "function" ? id : () => id,
      subscribe: (_channel: string, onSignal: (signal: RedisDriver.Signal) => void) => {
        onSignal({ _tag: "Subscribed" })
        return { cancel: () => {} }
      }
    } as unknown as Subscriber
  })

for (const at of ["asks which connection is to be told", "asks whether the application is told"]) {
  testLive(
    `A driver that ends while it ${at} has the server tell nobody, and leaves that to the next one`,
    function* () {
      const calls: Array<string> = []
      let resume = () => {}
      const held = new Promise<void>((resolve) => void (resume = resolve))
      const isFirst = at.includes("which")
      const redis = redisAt(async (command) => {
        calls.push(command)
        if (!isFirst && calls.length === 1) await held
        return command === "GETREDIR" ? -1 : "OK"
      })
      const first = yield* Effect.forkChild(
        Stream.runDrain(driver(redis, isFirst ? held.then(() => 1) : Promise.resolve(1))),
        { startImmediately: true }
      )
      if (!isFirst) yield* until("it asks", () => calls.length === 1)
      yield* Fiber.interrupt(first)
      resume()
      yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      const before = calls.length
      assert.notInclude(calls, "TRACKING")
      let isTold = false
      yield* Effect.forkChild(
        Stream.runForEach(driver(redis, Promise.resolve(2)), () => Effect.sync(() => void (isTold = true))),
        { startImmediately: true }
      )
      yield* until("the next is told", () => isTold)
      assert.deepStrictEqual(calls.slice(before), ["GETREDIR", "TRACKING", "CACHING"])
    }
  )
}

testLive("A driver whose connection to a node is replaced leaves the former one to the next driver", function* () {
  const asked = { former: 0, next: 0 }
  const counting = (which: keyof typeof asked) =>
    redisAt(async (command) => {
      if (command === "TRACKING") asked[which]++
      return command === "GETREDIR" ? -1 : "OK"
    })
  const [former, next] = [counting("former"), counting("next")]
  let now = former
  let ready = () => {}
  const listen = (onReady: () => void) => {
    ready = onReady
    return { close: () => {} }
  }
  yield* Effect.forkChild(Stream.runDrain(driver(() => now, Promise.resolve(1), listen)), { startImmediately: true })
  yield* until("the first is told", () => asked.former === 1)
  now = next
  ready()
  yield* until("it is told by the next connection", () => asked.next === 1)
  yield* Effect.forkChild(Stream.runDrain(driver(former, Promise.resolve(2))), { startImmediately: true })
  yield* until("the other is told by the former one", () => asked.former === 2)
})

for (const isTimedOut of [false, true]) {
  testLive(
    `A request that the server carries out over the next connection is not taken for the application's${isTimedOut ? ", although it has timed out" : ""}`,
    function* () {
      const asked: Array<number> = []
      let redirect = -1
      let reconnect = () => {}
      const reconnected = new Promise<void>((resolve) => void (reconnect = resolve))
      const redis = {
        status: "ready",
        call: async (_client: string, command: string, ...args: ReadonlyArray<unknown>) => {
          if (asked.length > 0) await reconnected
          if (command === "GETREDIR") return redirect
          if (command !== "TRACKING") return "OK"
          asked.push(args[2] as number)
          if (asked.length === 1) {
            if (isTimedOut) throw new Error("Command timed out")
            await reconnected
          }
          redirect = args[2] as number
          return "OK"
        }
      } as unknown as Redis
      let ready = () => {}
      let id = 1
      const reports = driver(
        redis,
        () => Promise.resolve(id),
        (onReady) => {
          ready = onReady
          return { close: () => {} }
        }
      )
      let fiber = yield* Effect.forkChild(Effect.exit(Stream.runDrain(reports)), { startImmediately: true })
      yield* until("it asks", () => asked.length === 1)
      id = 2
      if (isTimedOut) {
        yield* Fiber.join(fiber)
        fiber = yield* Effect.forkChild(Effect.exit(Stream.runDrain(reports)), { startImmediately: true })
      }
      // ioredis sends it again before it says that it is ready
      redirect = 1
      ready()
      reconnect()
      yield* until("it asks for its new one, or gives up", () => asked.includes(2) || fiber.pollUnsafe() !== undefined)
      assert.isUndefined(fiber.pollUnsafe())
      assert.deepStrictEqual(new Set(asked), new Set([1, 2]))
    }
  )
}
