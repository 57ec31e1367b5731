/**
 * What each kind costs in Redis: the table of docs/memory.md, measured. With MEMORY_TABLE=print the measured table is printed.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { assert } from "@effect/vitest"
import { Cron, Deferred, Effect, Fiber, Layer, Schema } from "effect"
import {
  CountDownLatch,
  DistributedCron,
  FairLock,
  FencedLock,
  LeaderElection,
  Lock,
  PermitSemaphore,
  ReadWriteLock,
  RedisLock,
  RunOnce,
  Semaphore
} from "effect-redis-lock"
import type { Redis } from "ioredis"
import { readFile } from "node:fs/promises"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { until } from "../kit/eventually.ts"
import { redisUrl } from "../kit/server/redisUrl.ts"
import { sectionUntilTold } from "../kit/sections.ts"
import { command, raw } from "./raw.ts"
import { suitesOn } from "../kit/test.ts"

/** 20 characters, as the page says. */
const name = `memory:${crypto.randomUUID().slice(0, 13)}`

interface Row {
  readonly kind: string
  readonly key: string
  readonly when: string
  readonly expiry: string
  readonly bytes: number
}

const owner = /[0-9a-f]{8}-[0-9a-f-]{27}:\d+/g

const expiryOf = (millis: number): string =>
  millis === -1
    ? "none"
    : millis <= 5000
      ? "a few seconds"
      : millis <= 30_000
        ? "the lease"
        : millis <= 60_000
          ? "a minute"
          : millis <= 10_800_000
            ? "its `timeToLive`"
            : millis <= 86_400_000
              ? "24 h"
              : "the lease and 24 h"

/** What is there now under the name. */
const seen = async (redis: Redis, kind: string, when: string): Promise<ReadonlyArray<Row>> => {
  const keys = (await redis.keys(`*${name}*`)).toSorted()
  return Promise.all(
    keys.map(async (key) => ({
      kind,
      key: key.replaceAll(name, "name").replaceAll(owner, "owner"),
      when,
      expiry: expiryOf(await redis.pttl(key)),
      bytes: Number(await redis.memory("USAGE", key))
    }))
  )
}

type AnyLock = Lock.Lock<RedisLock.RedisLock, any, any>

const client = RedisLock.layer().pipe(Layer.provide(IoRedis.layer({ url: redisUrl })))

/** Rows of a lock that is held, waited for by another client, and free again. */
const ofLock = (kind: string, held: AnyLock, waiting?: AnyLock) =>
  Effect.gen(function* () {
    const rows = [
      ...(yield* Lock.withLock(
        command((redis) => seen(redis, kind, "held")),
        held
      ))
    ]
    if (waiting !== undefined) {
      const holder = yield* sectionUntilTold(Lock.withLock(held))
      const before = new Set(rows.map(({ key }) => key))
      const waiter = yield* Lock.withLock(Effect.void, waiting).pipe(
        Effect.provide(Layer.fresh(client)),
        Effect.forkChild
      )
      let waited: ReadonlyArray<Row> = []
      while (waited.length === 0) {
        yield* Effect.sleep("10 millis")
        const all = yield* command((redis) => seen(redis, kind, "waited for"))
        waited = all.filter(({ key }) => !before.has(key))
      }
      rows.push(...waited)
      yield* holder.end
      yield* Fiber.join(waiter)
    }
    rows.push(...(yield* command((redis) => seen(redis, kind, "free"))))
    yield* command(async (redis) => redis.del(...(await redis.keys(`*${name}*`)), "nothing"))
    return rows
  })

/** Rows of a semaphore of which a permit is held, that another client waits for, and whose permits are all free again. */
const ofPermits = (
  kind: string,
  use: (permits: number) => <A>(self: Effect.Effect<A, any, any>) => Effect.Effect<A, any, any>
) =>
  Effect.gen(function* () {
    const held = yield* use(1)(command((redis) => seen(redis, kind, "held")))
    const holder = yield* sectionUntilTold(use(5))
    const waiter = yield* use(1)(Effect.void).pipe(Effect.provide(Layer.fresh(client)), Effect.forkChild)
    let waited: ReadonlyArray<Row> = []
    while (waited.length < 2) {
      yield* Effect.sleep("10 millis")
      const all = yield* command((redis) => seen(redis, kind, "waited for"))
      waited = all.filter(({ key }) => key.startsWith("effect_redis_lock_permit_"))
    }
    yield* holder.end
    yield* Fiber.join(waiter)
    const free = yield* command((redis) => seen(redis, kind, "free"))
    yield* command(async (redis) => redis.del(...(await redis.keys(`*${name}*`)), "nothing"))
    return [...held, ...waited, ...free]
  })

const measure = Effect.gen(function* () {
  const { readLock, writeLock } = ReadWriteLock.make(name)
  const permits = PermitSemaphore.make(name, { permits: 5 })
  const anonymous = Semaphore.make(name, { permits: 5 })
  const rows = [
    ...(yield* ofLock("Lock", Lock.make(name), Lock.make(name))),
    ...(yield* ofLock('Lock, tokens: "none"', Lock.make(name, { tokens: "none" }))),
    ...(yield* ofLock("FencedLock", FencedLock.make(name))),
    ...(yield* ofLock("FairLock", FairLock.make(name), FairLock.make(name))),
    ...(yield* ofLock("writeLock", writeLock, writeLock)),
    ...(yield* ofLock("readLock", readLock, writeLock)),
    ...(yield* ofPermits("Semaphore", (permits) => Semaphore.withPermits(anonymous, permits))),
    ...(yield* ofPermits("PermitSemaphore", (count) => PermitSemaphore.withPermits(permits, count)))
  ]
  yield* Effect.gen(function* () {
    const leadership = yield* LeaderElection.campaign(LeaderElection.make(name, { value: Schema.String }), {
      proclaim: "10.0.0.7:8080"
    })
    rows.push(...(yield* command((redis) => seen(redis, "LeaderElection", "led"))))
    yield* leadership.resign
    const record = `effect_redis_lock_record:{${name}}:leader`
    yield* until(
      "the record is gone",
      command(async (redis) => (await redis.exists(record)) === 0)
    )
    rows.push(...(yield* command((redis) => seen(redis, "LeaderElection", "nobody leads"))))
    yield* command(async (redis) => redis.del(...(await redis.keys(`*${name}*`)), "nothing"))
  }).pipe(Effect.scoped)
  yield* RunOnce.run(
    Effect.succeed("10.0.0.7:8080"),
    RunOnce.make(name, { timeToLive: "3 hours", result: Schema.String })
  )
  rows.push(...(yield* command((redis) => seen(redis, "RunOnce", "done"))))
  yield* command(async (redis) => redis.del(...(await redis.keys(`*${name}*`)), "nothing"))
  const ticked = yield* Deferred.make<void>()
  yield* Layer.build(
    DistributedCron.layer({ name, cron: Cron.parse("* * * * * *"), execute: Deferred.succeed(ticked, undefined) })
  ).pipe(Effect.andThen(Deferred.await(ticked)), Effect.scoped)
  rows.push(...(yield* command((redis) => seen(redis, "DistributedCron", "between ticks"))))
  yield* command(async (redis) => redis.del(...(await redis.keys(`*${name}*`)), "nothing"))
  yield* CountDownLatch.trySetCount(name, 3)
  rows.push(...(yield* command((redis) => seen(redis, "CountDownLatch", "closed"))))
  for (let i = 0; i < 3; i++) yield* CountDownLatch.countDown(name)
  rows.push(...(yield* command((redis) => seen(redis, "CountDownLatch", "open"))))
  return rows
})

const textOf = ({ bytes, expiry, key, kind, when }: Row): string =>
  `| \`${kind}\` | ${when} | \`${key}\` | ${expiry} | ${bytes} |`

const page = join(
  dirname(createRequire(import.meta.url).resolve("effect-redis-lock/package.json")),
  "../../docs/memory.md"
)

suitesOn(Layer.merge(client, raw), { excludeTestServices: true })("memory", (test) => {
  test("docs/memory.md says which keys each kind has in Redis, when, for how long, and what they cost", function* () {
    assert.strictEqual(name.length, 20)
    const rows = yield* measure
    if (process.env["MEMORY_TABLE"] === "print") process.stdout.write(`${rows.map(textOf).join("\n")}\n`)
    const text = yield* Effect.promise(() => readFile(page, "utf8"))
    const documented = text
      .split("\n")
      .map((line) => /^\| (`.*) \| (\d+) \|$/.exec(line.replace(/ +/g, " ")))
      .filter((match) => match !== null)
      .map(([, row, bytes]) => ({ row: row!, bytes: Number(bytes) }))
    const measured = rows.map((row) => ({
      row: textOf(row)
        .slice(2)
        .replace(/ \| \d+ \|$/, ""),
      bytes: row.bytes
    }))
    assert.deepStrictEqual(
      measured.map(({ row }) => row),
      documented.map(({ row }) => row)
    )
    for (const [i, { bytes, row }] of documented.entries()) {
      // versions of Redis and their allocators differ a little
      assert.closeTo(measured[i]!.bytes, bytes, bytes / 3, row)
    }
  })
})
