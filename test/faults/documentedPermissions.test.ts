import { assert } from "@effect/vitest"
import { Cron, Deferred, Effect, Fiber, Layer, Option, Schema, Stream } from "effect"
import {
  CountDownLatch,
  DistributedCron,
  FairLock,
  FencedLock,
  LeaderElection,
  Lock,
  MultiLock,
  NonReentrantLock,
  PermitId,
  PermitSemaphore,
  ReadWriteLock,
  RedLock,
  type RedisLock,
  RunOnce,
  Semaphore,
  SpinLock
} from "effect-redis-lock"
import type { Redis } from "ioredis"
import { readFileSync } from "node:fs"
import { client, clientOver } from "../kit/clients.ts"
import { storeError } from "../kit/exits.ts"
import { bare } from "../kit/server/bareRedis.ts"
import { growsBy, isTracked } from "../kit/server/conditions.ts"
import { onServer } from "../kit/server/onServer.ts"
import { testLive } from "../kit/test.ts"

/** The rules in the README of the driver, by the comment above them; those of every lock have none. */
const documented = new Map<string, ReadonlyArray<string>>()
const readme = readFileSync(new URL("../../packages/ioredis/README.md", import.meta.url), "utf8")
for (const [, kind, rules] of readme.matchAll(/(?:# (.*)\n)?ACL SETUSER locks (.*(?:\n {2}.*)*)/g)) {
  documented.set(kind ?? "Lock", rules!.split(/\s+/))
}

type Use = Effect.Effect<unknown, unknown, RedisLock.RedisLock>

/** Whatever can be done with a lock, with a rival who waits, and long enough for a renewal. */
const everything =
  <T>(lock: Lock.Lock<RedisLock.RedisLock, unknown, T>, { keeps = true, reentrant = true, rival = lock } = {}) =>
  (renewed: Effect.Effect<void>): Use =>
    Effect.gen(function* () {
      const waiter = yield* Effect.gen(function* () {
        if (reentrant) yield* Lock.withLock(Effect.void, lock)
        assert.isTrue(yield* Lock.isLocked(lock))
        const waiter = yield* Effect.forkDetach(Lock.withOwner(Lock.withLock(Effect.void, rival)), {
          startImmediately: true
        })
        yield* renewed
        return waiter
      }).pipe(Lock.withLock(lock))
      yield* Fiber.join(waiter)
      if (keeps) {
        const next = yield* Effect.scoped(
          Effect.andThen(
            Lock.scoped(lock as unknown as Lock.Lock, { minHold: "50 millis" }),
            Effect.forkDetach(Lock.withOwner(Lock.withLock(Effect.void, rival)), { startImmediately: true })
          )
        )
        yield* Fiber.join(next)
      }
      yield* Lock.forceRelease(lock)
      const late = yield* Lock.withLock(Lock.withOwner(Effect.flip(Lock.scoped(rival, { waitTime: 1 }))), lock)
      assert.propertyVal(late, "_tag", "LockTimeout")
    }).pipe(Effect.scoped)

const plain = ["a", "b"].map((name) => Lock.make(name))
const { readLock, writeLock } = ReadWriteLock.make("readWrite")
const counted = Semaphore.make("counted", { permits: 5 })
const leased = PermitSemaphore.make("leased", { permits: 5 })

const uses: Record<string, Record<string, (renewed: Effect.Effect<void>) => Use>> = {
  Lock: {
    Lock: everything(Lock.make("plain")),
    SpinLock: everything(SpinLock.make("spin")),
    NonReentrantLock: everything(NonReentrantLock.make("once"), { reentrant: false }),
    MultiLock: everything(MultiLock.make(plain), { keeps: false }),
    RedLock: everything(RedLock.make(plain), { keeps: false })
  },
  FencedLock: {
    "FencedLock, also after a Lock of its name": (renewed) =>
      Effect.andThen(Lock.withLock(Effect.void, "fenced"), everything(FencedLock.make("fenced"))(renewed))
  },
  "FairLock, NonReentrantLock with `fair`": { FairLock: everything(FairLock.make("fair")) },
  "LeaderElection, Singleton": {
    LeaderElection: () =>
      Effect.gen(function* () {
        const election = LeaderElection.make("election", { value: Schema.String })
        const leadership = yield* LeaderElection.campaign(election, { proclaim: "a" })
        const next = yield* Effect.forkDetach(LeaderElection.whileLeader(Effect.void, election), {
          startImmediately: true
        })
        yield* leadership.proclaim("b")
        yield* Stream.runHead(LeaderElection.changes(election))
        yield* leadership.resign
        yield* Fiber.join(next)
      }).pipe(Effect.scoped)
  },
  "RunOnce, DistributedCron": {
    DistributedCron: () =>
      Effect.gen(function* () {
        const ticked = yield* Deferred.make<void>()
        const job = DistributedCron.layer({
          name: "cron",
          cron: Cron.parse("* * * * * *"),
          execute: Deferred.succeed(ticked, undefined)
        })
        yield* Layer.build(job)
        yield* Deferred.await(ticked)
      }).pipe(Effect.scoped),
    RunOnce: () =>
      Effect.gen(function* () {
        const once = RunOnce.make("run-once", { timeToLive: "1 minute", result: Schema.String })
        const run = RunOnce.run(Effect.as(Effect.sleep("20 millis"), "done"), once)
        yield* Effect.all([run, run], { concurrency: "unbounded" })
        assert.deepStrictEqual(yield* RunOnce.result(once), Option.some("done"))
      })
  },
  ReadWriteLock: {
    readLock: everything(readLock, { keeps: false, rival: writeLock }),
    writeLock: everything(writeLock, { keeps: false, rival: readLock }),
    downgrading: () => Lock.withLock(Lock.withLock(Effect.void, readLock), writeLock)
  },
  Semaphore: {
    Semaphore: () =>
      Effect.gen(function* () {
        yield* Semaphore.withPermits(Effect.void, counted, 2)
        yield* Semaphore.trySetPermits("other", 1, { timeToLive: "1 second" })
        yield* Semaphore.addPermits(counted, 1)
        assert.strictEqual(yield* Semaphore.drainPermits(counted), 6)
      })
  },
  PermitSemaphore: {
    PermitSemaphore: () =>
      Effect.gen(function* () {
        const permit = yield* PermitSemaphore.scoped(leased, { permits: 2 })
        const late = yield* Effect.flip(PermitSemaphore.scoped(leased, { permits: 5, waitTime: 1 }))
        assert.propertyVal(late, "_tag", "LockTimeout")
        yield* permit.renew("1 hour")
        yield* PermitId.updateLeaseTime(leased, permit.ids[0]!, "1 hour")
        yield* PermitId.leaseTime(leased, permit.ids[0]!)
        yield* PermitSemaphore.setPermits(leased, 9)
        yield* PermitSemaphore.addPermits(leased, 1)
        assert.strictEqual(yield* PermitSemaphore.availablePermits(leased), 8)
      }).pipe(Effect.scoped)
  },
  CountDownLatch: {
    CountDownLatch: () =>
      Effect.gen(function* () {
        yield* CountDownLatch.trySetCount("latch", 2)
        assert.strictEqual(yield* CountDownLatch.countDown("latch"), 1)
        assert.strictEqual(yield* CountDownLatch.count("latch"), 1)
        const waiter = yield* Effect.forkDetach(CountDownLatch.await("latch"), { startImmediately: true })
        yield* CountDownLatch.countDown("latch")
        yield* Fiber.join(waiter)
        yield* CountDownLatch.delete("latch")
      })
  }
}

/** Gives the user `locks` the documented permissions; returns what the server has refused it since, also what is not an error, as that nobody can be told. */
const permit = Effect.fnUntraced(function* (redis: Redis, kind: string) {
  const rules = [...documented.get("Lock")!, ...documented.get(kind)!]
  const [setInfo] = (yield* Effect.promise(() => redis.command("INFO", "client|setinfo"))) as [unknown]
  if (setInfo !== null) rules.push(...documented.get("Redis 7.2 or newer, and Valkey")!)
  yield* Effect.promise(() => redis.acl("SETUSER", "locks", "reset", ...rules))
  // a 6.2 takes the name of ioredis, which it does not know how to keep, for something forbidden
  const isName = (entry: Array<unknown>) => setInfo === null && entry[entry.indexOf("object") + 1] === "client"
  return Effect.promise(async () =>
    ((await redis.call("ACL", "LOG")) as ReadonlyArray<Array<unknown>>).filter((entry) => !isName(entry))
  )
})

for (const [kind, cases] of Object.entries(uses)) {
  for (const [what, use] of Object.entries(cases)) {
    testLive(`A Redis user with the documented permissions may do everything with ${what}`, function* () {
      const { redis, server } = yield* onServer()
      const refused = yield* permit(redis, kind)
      yield* Effect.promise(() => redis.select(3))
      const at = { url: `redis://locks:secret@${server.host}:${server.port}/3` }
      const { run } = yield* client(at, { keyPrefix: "app:", watchdogLeaseTime: "6 seconds" })
      const left = async () =>
        Math.max(...(await Promise.all((await redis.keys("app:*")).map((key) => redis.pttl(key)))))
      const renewed = Effect.asVoid(Effect.suspend(() => growsBy("it is renewed", left, 1)))
      yield* run(Effect.orDie(use(renewed)))
      yield* Effect.promise(() => redis.set("app:foreign", "text"))
      const error = storeError(yield* Effect.exit(run(Lock.withLock(Effect.void, "foreign"))))
      assert.strictEqual(error.reason, "WrongType")
      assert.deepStrictEqual(yield* refused, [])
      yield* Effect.promise(() => redis.flushall())
    })
  }
}

testLive("A Redis user with the documented permissions may share its own client with the locks", function* () {
  const { redis, server } = yield* onServer()
  const refused = yield* permit(redis, "Your own client (`fromClient`)")
  const shared = yield* bare({ url: `redis://locks:secret@${server.host}:${server.port}/3` })
  yield* Effect.promise(() => shared.ping())
  const { run } = yield* clientOver(shared, { keyPrefix: "app:", watchdogLeaseTime: "1 hour" })
  yield* run(Lock.withLock(isTracked(redis), "a"))
  assert.deepStrictEqual(yield* refused, [])
  yield* Effect.promise(() => redis.flushall())
})
