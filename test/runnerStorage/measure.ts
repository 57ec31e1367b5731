/**
 * `pnpm runners:measure`: how long a refresh of 300 shards takes, beside Effect's `SqlRunnerStorage` on PostgreSQL, with advisory locks and with
 * rows, in turns. In about half a minute, on a machine that does nothing else. Needs an empty database, whose URL is `DATABASE_URL`.
 * Ends with 1 if a target is missed.
 */
import { PgClient } from "@effect/sql-pg"
import { IoRedis } from "@effect-redis-lock/ioredis"
import { RedisServer } from "@effect-redis-lock/testing"
import { Config, Context, Effect, Layer, References } from "effect"
import { RunnerStorage, ShardingConfig, SqlRunnerStorage } from "effect/cluster"
import { percentile } from "../kit/percentile.ts"
import { addressOf, runnerOf, shardsUpTo, storageOver } from "./storages.ts"

const rounds = 5
const refreshes = 200
const shards = shardsUpTo(300)

/** Each with tables of its own. */
const onPostgres = (prefix: string, shardLockDisableAdvisory: boolean) =>
  Layer.build(
    SqlRunnerStorage.layerWith({ prefix }).pipe(
      Layer.provide(PgClient.layerConfig({ url: Config.Redacted("DATABASE_URL") })),
      Layer.provide(ShardingConfig.layer({ shardLockExpiration: "1 minute", shardLockDisableAdvisory }))
    )
  ).pipe(Effect.map((context) => Context.get(context, RunnerStorage.RunnerStorage)))

const measure = Effect.gen(function* () {
  const server = yield* RedisServer.start()
  const storages = {
    Redis: yield* storageOver(IoRedis.layer({ url: server.url })),
    "PostgreSQL, advisory locks": yield* onPostgres("advisory", false),
    "PostgreSQL, rows": yield* onPostgres("rows", true)
  }
  const address = addressOf(1)
  for (const [name, storage] of Object.entries(storages)) {
    yield* storage.register(runnerOf(1), true)
    const acquired = yield* storage.acquire(address, shards)
    if (acquired.length < shards.length) throw new Error(`${name}: ${acquired.length} shards acquired`)
  }
  const millis: Record<string, Array<number>> = {}
  for (let round = 0; round <= rounds; round++) {
    for (const [name, storage] of Object.entries(storages)) {
      // the first round is for the compiler
      const into = round === 0 ? [] : (millis[name] ??= [])
      for (let i = 0; i < refreshes; i++) {
        const from = performance.now()
        const kept = yield* storage.refresh(address, shards)
        into.push(performance.now() - from)
        if (kept.length < shards.length) throw new Error(`${name}: ${kept.length} shards refreshed`)
      }
    }
  }
  return millis
}).pipe(Effect.scoped, Effect.provideService(References.MinimumLogLevel, "None"))

const millis = await Effect.runPromise(measure)
const median = (name: string) => percentile(millis[name]!, 50)
const own = median("Redis")
for (const name of Object.keys(millis)) {
  const ratio =
    name === "Redis" ? "" : `; Redis takes ${(own / median(name)).toFixed(2)} of that (target: at most 0.20)`
  console.log(`${name}: a refresh of ${shards.length} shards takes ${median(name).toFixed(2)} ms (median)${ratio}`)
}
process.exit(own <= 1 && own <= median("PostgreSQL, advisory locks") / 5 ? 0 : 1)
