import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { CountDownLatch, PermitSemaphore, Semaphore } from "effect-redis-lock"
import { client, onServer, type Site, storeError } from "./harness.ts"

/** A client of a user with these ACL rules. */
const clientWith = ({ redis, server }: Site, rules: ReadonlyArray<string>) =>
  Effect.andThen(
    Effect.promise(() => redis.acl("SETUSER", "locks", "reset", "on", ">secret", ...rules)),
    client({ url: `redis://locks:secret@${server.host}:${server.port}` }, { keyPrefix: "app:" })
  )

// as in the README of the driver
const locks =
  "~app:* ~redisson_lock_token:* ~redisson_lock__channel:* &redisson_lock__channel:* +evalsha +eval +publish +subscribe +unsubscribe +scan +info +exists +hexists +hset +hdel +hkeys +hgetall +del +get +set +time +pttl +pexpire"
const synchronizers =
  "~{app:* ~redisson_sc:* ~redisson_countdownlatch__channel__* ~effect_redis_lock_grant:* &redisson_sc:* &redisson_countdownlatch__channel__* +incrby +zadd +zrem +zscore +zrange +zcard +zremrangebyscore"
const enough = [...locks.split(" "), ...synchronizers.split(" ")]

const counted = Semaphore.make("counted", { permits: 5 })
const leased = PermitSemaphore.make("leased", { permits: 5 })

describe("a Redis user with few permissions", () => {
  it.live(
    "who may do what the documentation says, can do everything with semaphores and latches",
    onServer((site) =>
      Effect.gen(function* () {
        const { run } = yield* clientWith(site, enough)
        yield* run(
          Effect.gen(function* () {
            yield* Semaphore.withPermits(Effect.void, counted, 2)
            yield* Semaphore.trySetPermits("other", 1, { timeToLive: "1 second" })
            yield* Semaphore.addPermits(counted, 1)
            assert.strictEqual(yield* Semaphore.drainPermits(counted), 6)
            yield* Effect.scoped(
              Effect.gen(function* () {
                const permit = yield* PermitSemaphore.scoped(leased, { permits: 2 })
                yield* permit.renew("1 hour")
                yield* PermitSemaphore.updateLeaseTime(leased, permit.ids[0]!, "1 hour")
                yield* PermitSemaphore.leaseTime(leased, permit.ids[0]!)
                yield* PermitSemaphore.setPermits(leased, 9)
                yield* PermitSemaphore.addPermits(leased, 1)
                assert.strictEqual(yield* PermitSemaphore.availablePermits(leased), 8)
                assert.isFalse(yield* PermitSemaphore.tryRelease(leased, ["0".repeat(32)]))
              })
            )
            yield* CountDownLatch.trySetCount("latch", 2)
            assert.strictEqual(yield* CountDownLatch.countDown("latch"), 1)
            yield* CountDownLatch.delete("latch")
          })
        )
        yield* Effect.promise(() => site.redis.flushall())
      })
    )
  )

  for (const command of ["set", "incrby", "zadd"]) {
    it.live(
      `who may not use ${command} inside of the script acquires nothing, and takes nothing away`,
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
