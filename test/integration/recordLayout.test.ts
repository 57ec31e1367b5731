/**
 * What elections keep in Redis, byte for byte.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { assert } from "@effect/vitest"
import { Layer, Schema } from "effect"
import { LeaderElection, RedisLock } from "effect-redis-lock"
import { freshName } from "../kit/names.ts"
import { until } from "../kit/eventually.ts"
import { redisUrl } from "../kit/server/redisUrl.ts"
import { command, raw } from "./raw.ts"
import { suitesOn } from "../kit/test.ts"

const client = RedisLock.layer().pipe(Layer.provide(IoRedis.layer({ url: redisUrl })))

suitesOn(Layer.merge(client, raw), { excludeTestServices: true })("records", (test) => {
  for (const braced of [false, true]) {
    test(`What a leader has proclaimed is a string beside its lock${braced ? ", in the slot of its tag" : ""}`, function* () {
      const name = braced ? `{${freshName("leader")}}:a` : freshName("leader")
      const key = `effect_redis_lock_record:${braced ? name : `{${name}}`}:leader`
      const election = LeaderElection.make(name, { value: Schema.Struct({ port: Schema.Number }) })
      const leadership = yield* LeaderElection.campaign(election, { proclaim: { port: 80 } })
      const { owner, term } = leadership
      assert.strictEqual(yield* command((redis) => redis.get(key)), `${owner} ${term} 1 {"port":80}`)
      assert.strictEqual(yield* command((redis) => redis.pttl(key)), -1)
      assert.deepStrictEqual(yield* command((redis) => redis.hgetall(name)), { [owner]: "1" })
      yield* leadership.proclaim({ port: 81 })
      assert.strictEqual(yield* command((redis) => redis.get(key)), `${owner} ${term} 2 {"port":81}`)
      yield* leadership.resign
      yield* until(
        "the record is gone",
        command(async (redis) => (await redis.exists(key)) === 0)
      )
    })
  }
})
