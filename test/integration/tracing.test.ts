/**
 * Who traces the commands of ioredis, as OpenTelemetry's instrumentation does, sees ours among them.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { assert } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Lock, RedisLock } from "effect-redis-lock"
import { tracingChannel } from "node:diagnostics_channel"
import { redisUrl } from "../kit/server/redisUrl.ts"
import { until } from "../kit/eventually.ts"
import { testLive } from "../kit/test.ts"

interface Traced {
  readonly command: string
  readonly args: ReadonlyArray<string>
  readonly result?: unknown
}

/** Listens from now on, until the scope closes. */
const tracing = Effect.gen(function* () {
  const ended: Array<Traced> = []
  const channel = tracingChannel<unknown, Traced>("ioredis:command")
  const subscriber = {
    start() {},
    end() {},
    asyncStart() {},
    asyncEnd: (traced: Traced) => ended.push(traced),
    error() {}
  }
  yield* Effect.acquireRelease(
    Effect.sync(() => channel.subscribe(subscriber as never)),
    () => Effect.sync(() => channel.unsubscribe(subscriber as never))
  )
  return ended
})

testLive("A script is traced with its arguments, from its sending to its reply", function* () {
  const name = `traced:${crypto.randomUUID()}`
  const locks = yield* Layer.build(Layer.provide(RedisLock.layer(), IoRedis.layer({ url: redisUrl })))
  const use = Effect.provideContext(Lock.withLock(Lock.currentHolding(name), name), locks)
  yield* use
  const ended = yield* tracing
  const { token } = yield* use
  // who traces is told after the one who waits
  const ours = () => ended.filter(({ args }) => args.includes(name))
  yield* until("both commands are traced", () => ours().length >= 2)
  const [acquire, release] = ours()
  assert.strictEqual(acquire?.command, "evalsha")
  assert.strictEqual(acquire?.result, Number(token))
  assert.strictEqual(release?.command, "evalsha")
  assert.include(release!.args as Array<string>, `redisson_lock__channel:{${name}}`)
})
