/**
 * Effect's Redis over node-redis, whose connection nobody has closed and on which nothing comes back.
 */
import { NodeRedis } from "@effect/platform-node"
import { assert } from "@effect/vitest"
import { Effect, Exit, Layer, Scope } from "effect"
import { Lock, RedisDriver, RedisLock } from "effect-redis-lock"
import { clientOf, locksOver } from "../kit/clients.ts"
import { eventually, soon } from "../kit/eventually.ts"
import { storeError } from "../kit/exits.ts"
import { connected } from "../kit/server/conditions.ts"
import { behindProxy } from "../kit/server/onServer.ts"
import { testLive } from "../kit/test.ts"

const commandTimeout = 200
const section = Lock.withLock(Effect.succeed("done"), "report")

/** The recipe of docs/connecting.md. */
const replacingAfter = (before: Effect.Effect<void>) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const { client } = yield* NodeRedis.NodeRedis
      const destroy = Effect.sync(() => {
        if (client.isOpen) client.destroy()
      })
      yield* Effect.addFinalizer(() => destroy)
      const connectAgain = Effect.andThen(
        destroy,
        Effect.promise(() => client.connect())
      )
      return RedisDriver.layerRedisWith({ commandTimeout, onSilence: Effect.andThen(before, connectAgain) })
    })
  )

const replacing = replacingAfter(Effect.void)

const over = (driver: typeof replacing, url: string) =>
  locksOver(Layer.provide(driver, NodeRedis.layer({ url, disableOfflineQueue: true })))

testLive(
  "A half-open connection of node-redis times out the first command; the next ones fail at once, unsent, until something comes back",
  function* () {
    const { proxy, redis } = yield* behindProxy()
    const plain = Layer.provide(
      RedisDriver.layerRedisWith({ commandTimeout }),
      NodeRedis.layer({ url: proxy.url, disableOfflineQueue: true })
    )
    const mine = yield* clientOf(locksOver(plain))
    yield* connected(mine)
    const calls = Effect.promise(async () => (await redis.info("commandstats")).match(/cmdstat_eval(sha)?:calls=\d+/g))
    yield* proxy.stallReplies
    const isLocked = Lock.isLocked("report")
    assert.strictEqual(storeError(yield* Effect.exit(mine.run(isLocked))).reason, "TimedOut")
    const sent = yield* calls
    for (let i = 0; i < 5; i++) {
      const error = storeError(yield* Effect.exit(mine.run(isLocked)))
      assert.strictEqual(error.reason, "NotConnected")
      assert.isTrue(error.isTransient)
      assert.include(error.message, `nothing has come back for ${commandTimeout} ms`)
    }
    assert.deepStrictEqual(yield* calls, sent)
    yield* proxy.resume
    yield* connected(mine)
    assert.strictEqual(yield* mine.run(section), "done")
  }
)

testLive("A half-open connection of node-redis is replaced by the documented recipe", function* () {
  const { proxy } = yield* behindProxy()
  const mine = yield* clientOf(over(replacing, proxy.url))
  yield* connected(mine)
  yield* proxy.dropReplies
  assert.strictEqual(storeError(yield* Effect.exit(mine.run(Lock.isLocked("report")))).reason, "TimedOut")
  // what was lost stays lost: only a new connection can answer
  yield* eventually(
    "the client has connected again, and its handshake is answered",
    async () => {
      await Effect.runPromise(proxy.resume)
      return Effect.runPromise(Effect.exit(mine.run(Lock.isLocked("report"))))
    },
    Exit.isSuccess
  )
})

testLive(
  "A half-open connection of node-redis is replaced although a quorum gives up each command before it times out",
  function* () {
    const { proxy } = yield* behindProxy()
    // what was lost by then stays lost
    const members = [over(replacingAfter(proxy.resume), proxy.url)]
    const mine = yield* clientOf(RedisLock.layerQuorum(members, { memberTimeout: commandTimeout / 4 }))
    yield* connected(mine)
    yield* proxy.dropReplies
    yield* eventually(
      "the client has connected again",
      () => Effect.runPromise(Effect.exit(mine.run(Lock.isLocked("report")))),
      Exit.isSuccess
    )
  }
)

testLive(
  "A half-open connection of node-redis does not keep its layer from closing, by the documented recipe",
  function* () {
    const { proxy } = yield* behindProxy()
    const scope = yield* Scope.make()
    const mine = yield* Scope.provide(clientOf(over(replacing, proxy.url)), scope)
    yield* connected(mine)
    yield* proxy.stall
    yield* Effect.forkIn(Effect.exit(mine.run(Lock.isLocked("report"))), scope, { startImmediately: true })
    yield* soon("the layer is closed", Scope.close(scope, Exit.void))
  }
)
