/**
 * What the tests with Redisson share: a Redis of their own, a Java client and ours on it, and what can be seen from outside.
 *
 * Our waiters fall back to asking by themselves only after an hour, and leases are a minute long where a test is about being
 * woken: nothing but the other side's message can wake anybody in time.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { RedisCluster, RedisServer } from "@effect-redis-lock/testing"
import { assert, it } from "@effect/vitest"
import { Context, Effect, Fiber, Layer } from "effect"
import { type InvalidLockOptions, type RedisDriver, RedisLock } from "effect-redis-lock"
import type { Redis } from "ioredis"
import { spawn } from "node:child_process"
import { randomUUID } from "node:crypto"
import { fileURLToPath } from "node:url"
import type { HolderSettings } from "./fixtures/holder.ts"
import * as JavaClient from "./JavaClient.ts"
import { onlyMessages } from "../kit/onlyMessages.ts"
import { bare } from "../kit/server/bareRedis.ts"
import * as inTheEnd from "../kit/eventually.ts"
import { type Test, testsOf } from "../kit/test.ts"

/** Why these tests cannot run on this machine, where they cannot. */
export const skipped: string | undefined = process.env["INTEROP_SKIPPED"]

/** A lease of the watchdog on both sides, in milliseconds: short, to be waited out. */
export const watchdogLease = 3000

/** A lease that nobody waits out. */
export const longLease = 60_000

/** Within this time of a release the waiter must have been woken: far below {@link longLease}, yet patient. */
const soonMillis = 15_000

/** Where both sides are connected to. */
export class Site extends Context.Service<
  Site,
  {
    /** The server, or one node of the cluster. */
    readonly url: string
    /** Look at every node from outside; the first one is that of `url`. */
    readonly nodes: ReadonlyArray<Redis>
    readonly isCluster: boolean
    readonly java: JavaClient.JavaClient
    /** A client of ours, with the settings that the tests rely on. */
    readonly locks: (
      options?: RedisLock.RedisLockOptions
    ) => Layer.Layer<RedisLock.RedisLock, RedisDriver.RedisDriverError | InvalidLockOptions>
    /** The servers, where there are several that are independent. */
    readonly servers?: ReadonlyArray<RedisServer.RedisServer>
  }
>()("test/interop/Site") {}

const locksOver =
  (driver: Layer.Layer<RedisDriver.RedisDriver, RedisDriver.RedisDriverError | InvalidLockOptions>) =>
  (options?: RedisLock.RedisLockOptions) =>
    RedisLock.layer({ watchdogLeaseTime: watchdogLease, fallbackInterval: "1 hour", ...options }).pipe(
      onlyMessages({ fallbackInterval: "1 hour", ...options }),
      Layer.provide(Layer.fresh(driver))
    )

const oneServer = Layer.effect(
  Site,
  Effect.gen(function* () {
    const { url } = yield* RedisServer.start()
    return {
      url,
      nodes: [yield* bare({ url })],
      isCluster: false,
      java: yield* JavaClient.start({ address: url, watchdogTimeout: watchdogLease }),
      locks: locksOver(IoRedis.layer({ url }))
    }
  })
)

const aCluster = Layer.effect(
  Site,
  Effect.gen(function* () {
    const { urls } = yield* RedisCluster.start()
    return {
      url: urls[0]!,
      nodes: yield* Effect.forEach(urls, (url) => bare({ url })),
      isCluster: true,
      java: yield* JavaClient.start({ cluster: urls, watchdogTimeout: watchdogLease }),
      locks: locksOver(IoRedis.layerCluster({ nodes: urls }))
    }
  })
)

const threeServers = Layer.effect(
  Site,
  Effect.gen(function* () {
    const servers = yield* Effect.all(
      [1, 2, 3].map(() => RedisServer.start()),
      { concurrency: "unbounded" }
    )
    const urls = servers.map(({ url }) => url)
    return {
      url: urls[0]!,
      nodes: yield* Effect.forEach(urls, (url) => bare({ url })),
      isCluster: false,
      java: yield* JavaClient.start({ servers: urls, watchdogTimeout: watchdogLease }),
      locks: (options?: RedisLock.RedisLockOptions) =>
        RedisLock.layerQuorum(urls.map((url) => locksOver(IoRedis.layer({ url }))(options))),
      servers
    }
  })
)

/** The tests of a file, with a client of each side on a server of their own; skipped where there is no Java. */
export const withRedisson = (name: string, tests: (test: Test<Site | RedisLock.RedisLock>) => void): void =>
  both(name, oneServer, tests)

/** The same on a cluster of three nodes. */
export const withRedissonOnCluster = (name: string, tests: (test: Test<Site | RedisLock.RedisLock>) => void): void =>
  both(`${name}, on a cluster`, aCluster, tests)

/** The same with three independent servers, and a client of ours whose locks are held on a majority of them. */
export const withRedissonOnThreeServers = (
  name: string,
  tests: (test: Test<Site | RedisLock.RedisLock>) => void
): void => both(name, threeServers, tests)

const both = <E>(
  name: string,
  site: Layer.Layer<Site, E>,
  tests: (test: Test<Site | RedisLock.RedisLock>) => void
): void => {
  if (skipped !== undefined) {
    it.skip(`${name}: ${skipped}`, () => {})
    return
  }
  const layer = Layer.unwrap(Effect.map(Site, ({ locks }) => locks())).pipe(Layer.provideMerge(site))
  it.layer(layer, { excludeTestServices: true, timeout: "60 seconds" })(name, (it) => {
    tests(testsOf(it.effect))
  })
}

/** The same with a hash tag of its own. */
export const bracedName = (): string => `interop:{${randomUUID().slice(0, 8)}}:lock`

/** Asks again and again until the answer is as it must be; fails with the last answer where that is not soon. */
export const eventually = <A, E, R>(what: string, ask: Effect.Effect<A, E, R>, holds: (answer: A) => boolean) =>
  inTheEnd.eventually(what, ask, holds, soonMillis)

/** Waits for what must happen soon. */
export const soon = <A, E, R>(what: string, self: Effect.Effect<A, E, R>) => inTheEnd.soon(what, self, soonMillis)

/** Which clients have subscribed to a channel of this name: one entry for each. */
const subscriptions = (name: string) =>
  Effect.flatMap(Site, ({ isCluster, nodes }) =>
    Effect.promise(async () => {
      const shard = isCluster ? "SHARD" : ""
      const subscribed: Array<string> = []
      for (const redis of nodes) {
        const channels = (await redis.call("PUBSUB", `${shard}CHANNELS`, `*${name}*`)) as ReadonlyArray<string>
        const counts = (await redis.call("PUBSUB", `${shard}NUMSUB`, ...channels)) as ReadonlyArray<string | number>
        for (const [index, channel] of channels.entries()) {
          subscribed.push(...Array.from({ length: Number(counts[2 * index + 1]) }, () => channel))
        }
      }
      return subscribed
    })
  )

/** How many scripts have been run. */
const scriptsRun = Effect.flatMap(Site, ({ nodes }) =>
  Effect.promise(async () => {
    let sum = 0
    for (const redis of nodes) {
      const stats = await redis.info("commandstats")
      for (const [, calls, failed] of stats.matchAll(/cmdstat_eval(?:sha)?:calls=(\d+),.*?failed_calls=(\d+)/g)) {
        sum += Number(calls) - Number(failed)
      }
    }
    return sum
  })
)

/**
 * Forks somebody who must wait for this name, and waits until he does: until he is subscribed (where there are messages)
 * and has tried twice in vain. A thread of Java must sleep, too: a writer's message wakes only those that do. Nothing else may
 * run scripts meanwhile. The inner effect waits until he is woken.
 */
export const waiting = Effect.fnUntraced(function* <A, E, R>(
  name: string,
  self: Effect.Effect<A, E, R>,
  options?: { readonly attempts?: number; readonly subscribes?: boolean }
) {
  const { attempts = 2, subscribes = true } = options ?? {}
  const { java } = yield* Site
  const ranBefore = yield* scriptsRun
  const subscribedBefore = (yield* subscriptions(name)).length
  const fiber = yield* Effect.forkScoped(self, { startImmediately: true })
  yield* eventually(
    `somebody waits for "${name}"`,
    Effect.map(Effect.all([scriptsRun, subscriptions(name), java.awake]), ([ran, subscribed, awake]) => ({
      isDone: fiber.pollUnsafe() !== undefined,
      attempts: ran - ranBefore,
      subscriptions: subscribed.length - subscribedBefore,
      awake
    })),
    (seen) =>
      seen.isDone || (seen.attempts >= attempts && (!subscribes || (seen.subscriptions > 0 && seen.awake === 0)))
  )
  assert.isUndefined(fiber.pollUnsafe(), `nobody had to wait for "${name}"`)
  return soon(`the waiter for "${name}" is woken`, Fiber.join(fiber))
})

/** Starts a process of ours that holds a lock, waits until it does; the inner effect kills it. */
export const holderProcess = Effect.fnUntraced(function* (settings: HolderSettings) {
  const program = fileURLToPath(new URL("../dist/interop/fixtures/holder.js", import.meta.url))
  let output = ""
  const child = yield* Effect.acquireRelease(
    Effect.sync(() => {
      const child = spawn(process.execPath, [program, JSON.stringify(settings)])
      for (const stream of [child.stdout, child.stderr]) {
        stream.setEncoding("utf8").on("data", (text: string) => (output += text))
      }
      return child
    }),
    (child) => Effect.sync(() => child.kill("SIGKILL"))
  )
  yield* eventually(
    "the other process has the lock",
    Effect.sync(() => ({ output, exitCode: child.exitCode })),
    ({ exitCode, output }) => output.includes("held") || exitCode !== null
  )
  assert.isNull(child.exitCode, output)
  return {
    kill: Effect.callback<void>((resume) => {
      child.once("close", () => resume(Effect.void))
      child.kill("SIGKILL")
    })
  }
})

/** When something was done, beside what came of it. */
export const timed = <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<{ at: number; value: A }, E, R> =>
  Effect.map(self, (value) => ({ at: performance.now(), value }))
