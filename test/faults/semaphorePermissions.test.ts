import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { PermitSemaphore, Semaphore } from "effect-redis-lock"
import { client } from "../kit/clients.ts"
import { storeError } from "../kit/exits.ts"
import { onServer, type Site } from "../kit/server/onServer.ts"

/** A client of a user with these ACL rules. */
const clientWith = ({ redis, server }: Site, rules: ReadonlyArray<string>) =>
  Effect.andThen(
    Effect.promise(() => redis.acl("SETUSER", "locks", "reset", "on", ">secret", ...rules)),
    client({ url: `redis://locks:secret@${server.host}:${server.port}` }, { keyPrefix: "app:" })
  )

// what they need, and a lock besides
const locks =
  "~app:* ~redisson_lock_token:* ~redisson_lock__channel:* &redisson_lock__channel:* +evalsha +eval +publish +subscribe +unsubscribe +scan +info +exists +hexists +hset +hdel +hkeys +hgetall +del +get +set +time +pttl +pexpire"
const synchronizers =
  "~{app:* ~redisson_sc:* ~redisson_countdownlatch__channel__* ~effect_redis_lock_grant:* ~effect_redis_lock_permit_places:* ~effect_redis_lock_permit_wants:* &redisson_sc:* &redisson_countdownlatch__channel__* +hget +incrby +zadd +zrem +zscore +zrange +zcard +zcount +zremrangebyrank"
const enough = [...locks.split(" "), ...synchronizers.split(" ")]

const counted = Semaphore.make("counted", { permits: 5 })
const leased = PermitSemaphore.make("leased", { permits: 5 })

describe("a Redis user with few permissions", () => {
  for (const command of ["set", "incrby", "zadd"]) {
    it.live(
      `A Redis user that may not use ${command} inside a script acquires no permits, and takes none away`,
      onServer((site) =>
        Effect.gen(function* () {
          yield* Effect.promise(() => site.redis.mset("app:counted", "5", "app:leased", "5"))
          const { run } = yield* clientWith(site, [...enough, `-${command}`])
          for (const section of [
            ...(command === "zadd" ? [] : [Semaphore.withPermits(Effect.void, counted, 2)]),
            ...(command === "set" ? [] : [PermitSemaphore.withPermits(Effect.void, leased, 2)])
          ]) {
            assert.strictEqual(storeError(yield* Effect.exit(run(section))).reason, "NoPermission")
          }
          assert.deepStrictEqual(yield* Effect.promise(() => site.redis.mget("app:counted", "app:leased")), ["5", "5"])
          assert.strictEqual(yield* Effect.promise(() => site.redis.dbsize()), 2)
          yield* Effect.promise(() => site.redis.flushall())
        })
      )
    )
  }
})
