/**
 * `pnpm failovers:measure`: what acknowledgement by all replicas costs, on a master with two replicas, and how soon after a failover by Sentinel
 * a client knows which of its locks are lost. In about a minute and a half, on a machine that does nothing else. Ends with 1 if a target is missed.
 */
import { dyingUnheard } from "@effect-redis-lock/chaos/nemeses"
import { openSite } from "@effect-redis-lock/chaos/sites"
import { IoRedis } from "@effect-redis-lock/ioredis"
import { Effect, Layer, References } from "effect"
import { Lock, RedisLock } from "effect-redis-lock"
import { percentile } from "../kit/percentile.ts"
import { type Client, clientOf } from "../kit/clients.ts"
import { until } from "../kit/eventually.ts"
import { replicated } from "../kit/server/replicated.ts"

const rounds = 3
const workers = 64
const seconds = { warmUp: 1, measured: 3 }
const all = { replicas: "all", within: "5 seconds" } as const

const options = { commandTimeout: "1 second", warnings: [] } as const

const clientOn = (driver: ReturnType<typeof IoRedis.layer>) => clientOf(RedisLock.layer().pipe(Layer.provide(driver)))

/** Microseconds that each pair of acquisition and release took, of workers with a lock of their own. */
const pairs = (client: Client, workers: number, acknowledge: typeof all | "none", seconds: number) =>
  Effect.suspend(() => {
    const micros: Array<number> = []
    const until = performance.now() + seconds * 1000
    const worker = (number: number) =>
      Effect.gen(function* () {
        const pair = Lock.withLock(Effect.void, `worker ${number}`, { acknowledge })
        while (performance.now() < until) {
          const from = performance.now()
          yield* pair
          micros.push((performance.now() - from) * 1000)
        }
      })
    const numbers = Array.from({ length: workers }, (_, number) => number)
    return Effect.as(client.run(Effect.forEach(numbers, worker, { concurrency: "unbounded", discard: true })), micros)
  })

const cost = Effect.gen(function* () {
  const { master } = yield* replicated(2)
  const client = yield* clientOn(IoRedis.layer({ ...options, url: master.server.url }))
  const figure = Effect.fnUntraced(function* (workers: number, acknowledge: typeof all | "none") {
    yield* pairs(client, workers, acknowledge, seconds.warmUp)
    const micros = yield* pairs(client, workers, acknowledge, seconds.measured)
    return { perSecond: micros.length / seconds.measured, p50: percentile(micros, 50) }
  })
  const found = []
  // in turn, as the machine may change meanwhile
  for (let round = 0; round < rounds; round++) {
    const many = { without: yield* figure(workers, "none"), acknowledged: yield* figure(workers, all) }
    const one = { without: yield* figure(1, "none"), acknowledged: yield* figure(1, all) }
    console.log(
      `${workers} workers: ${many.without.perSecond.toFixed(0)} pairs/s, acknowledged ${many.acknowledged.perSecond.toFixed(0)}; ` +
        `one: p50 ${one.without.p50.toFixed(0)} µs, acknowledged ${one.acknowledged.p50.toFixed(0)} µs`
    )
    found.push({
      pairs: many.acknowledged.perSecond / many.without.perSecond,
      p50: one.acknowledged.p50 / one.without.p50
    })
  }
  return {
    pairs: percentile(
      found.map(({ pairs }) => pairs),
      50
    ),
    p50: percentile(
      found.map(({ p50 }) => p50),
      50
    )
  }
}).pipe(Effect.scoped)

const held = 50
const failovers = 12

const losses = Effect.gen(function* () {
  const site = yield* Effect.orDie(openSite("sentinel", { clients: 1, late: () => {} }))
  const client = yield* clientOn(IoRedis.layerSentinel({ ...options, sentinels: site.ways[0]!.urls }))
  const millis: Array<number> = []
  for (let failover = 0; failover < failovers; failover++) {
    let answeredAt = Number.NaN
    const lostAt: Array<number> = []
    let inside = 0
    const section = (number: number) =>
      client
        .run(
          Lock.withLock(
            Effect.andThen(
              Effect.sync(() => inside++),
              Effect.never
            ),
            `failover ${failover}, lock ${number}`
          )
        )
        .pipe(Effect.exit, Effect.andThen(Effect.sync(() => lostAt.push(performance.now()))), Effect.forkScoped)
    const redis = site.redises.get((yield* site.master(0)).port)!
    // its successor has heard of none of these
    const begins = Effect.forEach(
      Array.from({ length: held }, (_, number) => number),
      section
    )
    const areHeld = until("all are held", () => inside === held)
    yield* dyingUnheard({ site, redis, heal: () => (answeredAt = performance.now()) }, Effect.andThen(begins, areHeld))
    yield* site.whole
    yield* until("all are lost", () => lostAt.length === held)
    const took = lostAt.map((at) => Math.max(0, at - answeredAt))
    console.log(`failover: ${held} losses known after ${percentile(took, 50).toFixed(0)} ms (median)`)
    millis.push(...took)
  }
  return percentile(millis, 99)
}).pipe(Effect.scoped)

const [{ p50, pairs: ratio }, p99] = await Effect.runPromise(
  Effect.all([cost, losses]).pipe(Effect.provideService(References.MinimumLogLevel, "None"))
)
console.log(`${workers} workers: ${ratio.toFixed(2)} of the pairs/s without acknowledgement (target: at least 0.5)`)
console.log(`one worker: p50 ${p50.toFixed(2)} times that without (target: at most 2.5)`)
console.log(`a loss is known ${p99.toFixed(0)} ms after the new master answers, p99 (target: at most 500)`)
process.exit(ratio >= 0.5 && p50 <= 2.5 && p99 <= 500 ? 0 : 1)
