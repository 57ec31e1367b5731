/**
 * Connections on which nothing comes back.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { assert } from "@effect/vitest"
import { Effect, Result, Schedule } from "effect"
import { Lock } from "effect-redis-lock"
import { Redis } from "ioredis"
import { client, clientOf, clientOver, locksOver } from "../kit/clients.ts"
import { eventually } from "../kit/eventually.ts"
import { bare } from "../kit/server/bareRedis.ts"
import { connected } from "../kit/server/conditions.ts"
import { behindProxy } from "../kit/server/onServer.ts"
import { testLive } from "../kit/test.ts"
import { undisturbed } from "../kit/undisturbed.ts"

const commandTimeout = 300

const isLocked = Lock.isLocked("report")

const reasonOf = (error: { readonly _tag: string }) => ("reason" in error ? error.reason : error._tag)

testLive(
  "A silent connection is replaced, and so is one whose handshake is not answered; an application's own is left alone",
  function* () {
    const { proxy, redis: observer } = yield* behindProxy()
    const received = async () => Number(/total_connections_received:(\d+)/.exec(await observer.info("stats"))![1])
    const theirs = yield* bare(proxy)
    const application = yield* clientOver(theirs, { commandTimeout })
    yield* connected(application)
    const theirId = yield* Effect.promise(() => theirs.client("ID"))
    const ours = yield* client(proxy, { commandTimeout })
    yield* connected(ours)
    const before = yield* Effect.promise(received)

    yield* proxy.stallReplies
    for (const { run } of [ours, application]) {
      const error = yield* Effect.flip(run(isLocked))
      assert.strictEqual(reasonOf(error), "TimedOut")
    }
    // the connection itself, and then one whose handshake was not answered
    yield* eventually("two connections more have come", received, (now) => now >= before + 2)

    yield* proxy.resume
    yield* connected(ours)
    yield* connected(application)
    assert.strictEqual(yield* Effect.promise(() => theirs.client("ID")), theirId)
  }
)

testLive("A silent connection is replaced, also where ioredis gives up its PING before that", function* () {
  const { proxy, redis: observer } = yield* behindProxy()
  // its handshake may take longer on a busy machine
  const mine = yield* client(proxy, { commandTimeout, ioredis: { commandTimeout } }).pipe(
    Effect.retry({ times: 100, schedule: Schedule.spaced(50) })
  )
  yield* connected(mine)
  const received = async () => Number(/total_connections_received:(\d+)/.exec(await observer.info("stats"))![1])
  const before = yield* Effect.promise(received)
  yield* proxy.dropReplies
  yield* eventually("another connection has come", received, (now) => now > before, "1 minute")
})

testLive("A connection that is silent for longer than a command may take, but comes back, is kept", function* () {
  const commandTimeout = 600
  yield* undisturbed(commandTimeout / 2, function* (watch) {
    const { proxy, redis: observer } = yield* behindProxy()
    yield* watch(observer)
    const clients = Effect.promise(async () =>
      String(await observer.client("LIST"))
        .split("\n")
        .flatMap((line) => /^id=(\d+)/.exec(line)?.[1] ?? [])
    )
    const mine = yield* client(proxy, { commandTimeout })
    yield* connected(mine)
    const before = yield* clients
    // there and back it takes longer than a command may, and shorter than the connection may be silent
    yield* proxy.delay(commandTimeout * 0.7)
    for (let timedOut = 0; timedOut < 5;) {
      const result = yield* Effect.result(mine.run(isLocked))
      // a process that has stood still may read the reply before it looks at the clock
      if (Result.isSuccess(result)) continue
      assert.strictEqual(reasonOf(result.failure), "TimedOut")
      timedOut++
    }
    yield* proxy.delay(0)
    yield* connected(mine)
    const after = yield* clients
    for (const id of before) assert.include(after, id)
  })
})

testLive(
  "A silent connection fails a command after the timeout of an application's client, if that is shorter",
  function* () {
    const { proxy } = yield* behindProxy()
    const redis = yield* Effect.acquireRelease(
      Effect.sync(() => new Redis(proxy.url, { commandTimeout })),
      (redis) => Effect.sync(() => redis.disconnect())
    )
    redis.on("error", () => {})
    // its handshake may take longer on a busy machine
    const mine = yield* clientOf(locksOver(IoRedis.fromClient(redis, { commandTimeout: "1 hour" }))).pipe(
      Effect.retry({ times: 100, schedule: Schedule.spaced(50) })
    )
    yield* connected(mine)
    yield* proxy.stallReplies
    const error = yield* Effect.flip(mine.run(isLocked))
    assert.include(error.message, `${commandTimeout} ms`)
  }
)

testLive("A client whose commandTimeout is null, which ioredis takes for none, has that of the driver", function* () {
  const { proxy } = yield* behindProxy()
  const settings = { commandTimeout: null as unknown as number }
  const redis = yield* Effect.acquireRelease(
    Effect.sync(() => new Redis(proxy.url, settings)),
    (redis) => Effect.sync(() => redis.disconnect())
  )
  const clients = [
    yield* clientOver(redis, { commandTimeout: 60_000 }),
    yield* client(proxy, { commandTimeout: "1 minute", ioredis: settings })
  ]
  // longer than no time at all
  yield* proxy.delay(50)
  for (const { run } of clients) assert.isFalse(yield* run(isLocked))
})
