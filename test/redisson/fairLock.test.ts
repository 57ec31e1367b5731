/**
 * What Redisson's own tests verify of its fair lock, by the numbers of the project's list of behaviours, where no other test here
 * proves it. Leases and waits are shortened, in proportion; what each waiter adds to the scores, Redisson's `fairLockWaitTimeout`
 * of 5 minutes, is not.
 *
 * - 90 to 94 look at the scores: a waiter here is not told an estimate, but how long the present holder has left.
 */
import { assert, it } from "@effect/vitest"
import { Duration, Effect, Fiber, Layer, Schedule, type Scope } from "effect"
import { FairLock, Lock, RedisLock } from "effect-redis-lock"
import { redisUrl } from "../kit/server/redisUrl.ts"
import { abandoned, clients, held, onBothStores, otherClient, otherThread, storeAt, tryLock } from "./kit.ts"
import { bare } from "../kit/server/bareRedis.ts"
import { freshName } from "../kit/names.ts"
import { until } from "../kit/eventually.ts"
import { growsBy } from "../kit/server/conditions.ts"
import { testLive } from "../kit/test.ts"
import { background } from "../kit/background.ts"
import { undisturbed } from "../kit/undisturbed.ts"

const make = (name: string) => FairLock.make(name)
const fresh = Effect.sync(() => make(freshName("redisson")))

onBothStores("RFairLock", (it) => {
  it.effect("95. asking once never takes a place: when the lease is over, anybody gets the lock", () =>
    Effect.gen(function* () {
      const lock = yield* fresh
      yield* abandoned(lock, { leaseTime: 2000 })
      for (let i = 0; i < 3; i++) assert.isFalse(yield* otherThread(tryLock(lock)))
      yield* until(
        "the lease ends",
        Effect.map(Lock.isLocked(lock), (locked) => !locked)
      )
      assert.isTrue(yield* otherClient(tryLock(lock)))
    })
  )
})

const patience = 300_000
const layer = Layer.provideMerge(clients, storeAt(redisUrl))

/** Looks at the queue of a lock from outside. */
const observed = Effect.fnUntraced(function* (name: string) {
  const redis = yield* bare({ url: redisUrl })
  const queue = `redisson_lock_queue:{${name}}`
  const timeouts = `redisson_lock_timeout:{${name}}`
  /** At one moment of the server's clock, milliseconds: now, until when the holder's lease runs, and the scores in the order of the queue. */
  const look = Effect.promise(async () => {
    const [[, [seconds, micros]], [, left], [, owners], [, scores]] = (await redis
      .multi()
      .time()
      .pttl(name)
      .lrange(queue, 0, -1)
      .zrange(timeouts, "0", "-1", "WITHSCORES")
      .exec()) as [
      [null, [string, string]],
      [null, number],
      [null, ReadonlyArray<string>],
      [null, ReadonlyArray<string>]
    ]
    const at = Number(seconds) * 1000 + Math.floor(Number(micros) / 1000)
    return { at, leaseEnd: at + left, scores: owners.map((owner) => Number(scores[scores.indexOf(owner) + 1])) }
  })
  return {
    redis,
    queue,
    timeouts,
    look,
    length: Effect.promise(() => redis.llen(queue)),
    /** In the order of the queue, milliseconds ahead of now. */
    scores: Effect.map(look, ({ at, scores }) => scores.map((score) => score - at)),
    /** In the order of the queue, milliseconds ahead of the end of the holder's lease. */
    behindLease: Effect.map(look, ({ leaseEnd, scores }) => scores.map((score) => score - leaseEnd))
  }
})

const near = (actual: ReadonlyArray<number>, expected: ReadonlyArray<number>) => {
  assert.strictEqual(actual.length, expected.length)
  // scores that are nearly right are left as they are
  actual.forEach((value, i) => assert.approximately(value, expected[i]!, 20, `place ${i}`))
}

/** A waiter that holds, once served, until interrupted. */
const waiter = Effect.fnUntraced(function* (
  lock: Lock.Lock,
  { length }: { readonly length: Effect.Effect<number> },
  options: Lock.AcquireOptions = {}
) {
  const places = yield* length
  const served = { yes: false }
  const fiber = yield* Effect.sync(() => (served.yes = true))
    .pipe(Effect.andThen(Effect.never), Lock.withLock(lock, { leaseTime: 30_000, ...options }))
    .pipe(Effect.forkScoped({ startImmediately: true }))
  yield* until(
    "it has its place",
    Effect.map(length, (now) => now === places + 1)
  )
  return { fiber, served, leave: Fiber.interrupt(fiber) }
})

/** What a waiter that gave up was told of the holder. */
const toldRemaining = ({ fiber }: Effect.Success<ReturnType<typeof waiter>>) =>
  Effect.map(Effect.flip(Fiber.join(fiber)), (error) =>
    error._tag === "LockTimeout" ? Duration.toMillis(error.holder!.remaining!) : assert.fail(error._tag)
  )

const test = (
  title: string,
  steps: (
    lock: Lock.Lock,
    seen: Effect.Success<ReturnType<typeof observed>>
  ) => Generator<Effect.Effect<unknown, unknown, RedisLock.RedisLock | Scope.Scope>, unknown, any>
) =>
  it.live(title, () =>
    Effect.gen(function* () {
      // the waiters of a process that stands still for a second and a half may be passed over
      yield* undisturbed("1 second", function* (watch) {
        const lock = yield* fresh
        const seen = yield* observed(lock.name)
        yield* watch(seen.redis)
        yield* steps(lock, seen)
      })
    }).pipe(Effect.scoped, Effect.provide(layer))
  )

test("90. each waiter's score is that of the one before and its own time; the first one's counts from the lease", function* (lock, seen) {
  yield* held(lock, { leaseTime: 30_000 })
  for (let i = 0; i < 4; i++) yield* waiter(lock, seen)
  near(
    yield* seen.behindLease,
    [1, 2, 3, 4].map((i) => i * patience)
  )
})

test("91. when one gives up, those behind move up by its time; all are told what the holder has left", function* (lock, seen) {
  yield* held(lock, { leaseTime: 30_000 })
  yield* waiter(lock, seen)
  const second = yield* waiter(lock, seen)
  yield* waiter(lock, seen)
  const fourth = yield* waiter(lock, seen, { waitTime: 1500 })
  yield* second.leave
  near(
    yield* seen.behindLease,
    [1, 2, 3].map((i) => i * patience)
  )
  const before = yield* seen.look
  const told = yield* toldRemaining(fourth)
  const after = yield* seen.look
  assert.isAtMost(told, before.leaseEnd - before.at)
  assert.isAtLeast(told, after.leaseEnd - after.at - 20)
})

test("92. the release serves the first at once, and the others see its lease", function* (lock, seen) {
  const holder = yield* held(lock, { leaseTime: 10_000 })
  const first = yield* waiter(lock, seen)
  const last = yield* waiter(lock, seen, { waitTime: 5000 })
  yield* holder.letGo
  yield* until("the first is served", () => first.served.yes)
  const before = yield* seen.look
  const told = yield* toldRemaining(last)
  const after = yield* seen.look
  assert.isAtMost(told, before.leaseEnd - before.at)
  assert.isAtLeast(told, after.leaseEnd - after.at - 20)
})

test("93. the one that is served takes its time off the others' scores; a new one adds its own to the last", function* (lock, seen) {
  const holder = yield* held(lock, { leaseTime: 30_000 })
  const first = yield* waiter(lock, seen)
  yield* waiter(lock, seen)
  const [, before] = (yield* seen.look).scores
  yield* holder.letGo
  yield* until("the first is served", () => first.served.yes)
  const [after] = (yield* seen.look).scores
  assert.approximately(before! - after!, patience, 20)
  yield* waiter(lock, seen)
  const { leaseEnd, scores } = yield* seen.look
  assert.strictEqual(scores[0], after)
  assert.approximately(scores[1]! - leaseEnd, 2 * patience, 20)
})

test("94. a waiter keeps its place and score however often it asks", function* (lock, seen) {
  yield* held(lock, { leaseTime: 30_000 })
  yield* waiter(lock, seen)
  yield* waiter(lock, seen)
  const owners = yield* Effect.promise(() => seen.redis.lrange(seen.queue, 0, -1))
  // wakes them for nothing
  for (const owner of owners) {
    yield* Effect.promise(() => seen.redis.publish(`redisson_lock__channel:{${lock.name}}:${owner}`, "0"))
  }
  yield* growsBy(
    "their client has asked and reported",
    async () => Number(await seen.redis.zscore(`effect_redis_lock_clients:{${lock.name}}`, owners[0]!.slice(0, 36))),
    3
  )
  assert.deepStrictEqual(yield* Effect.promise(() => seen.redis.lrange(seen.queue, 0, -1)), owners)
  near(yield* seen.behindLease, [patience, 2 * patience])
})

/** A waiter of another library's client that never comes back, as Redisson leaves it with a fair wait of `millis`, or that long behind a lease. */
const ghost = (seen: Effect.Success<ReturnType<typeof observed>>, millis: number, from: "at" | "leaseEnd" = "at") =>
  Effect.gen(function* () {
    const owner = `${crypto.randomUUID()}:1`
    const score = (yield* seen.look)[from] + millis
    yield* Effect.promise(() => seen.redis.multi().rpush(seen.queue, owner).zadd(seen.timeouts, score, owner).exec())
  })

test("96. waiters that never come back are passed over when their time has come", function* (lock, seen) {
  yield* ghost(seen, 600)
  yield* ghost(seen, 800)
  yield* Lock.withLock(Effect.void, lock)
  assert.strictEqual(yield* Effect.promise(() => seen.redis.exists(seen.queue, seen.timeouts)), 0)
})

const bounded = (scores: ReadonlyArray<number>, lease: number) =>
  scores.forEach((score, i) => assert.isAtMost(score, lease + patience * (i + 1) + 3000, `place ${i}`))

test("97. many rounds of waits that end in vain do not add up in the scores", function* (lock, seen) {
  yield* held(lock, { leaseTime: 30_000 })
  const vain = Effect.flip(Lock.withLock(Effect.void, lock, { waitTime: 20 }))
  const thread = Effect.repeat(vain, Schedule.recurs(49))
  yield* Effect.forEach([1, 2, 3], () => thread, { concurrency: "unbounded" })
  yield* ghost(seen, 30_000)
  const last = yield* waiter(lock, seen)
  bounded(yield* seen.scores, 30_000)
  yield* last.leave
  assert.isTrue(yield* Lock.forceRelease(lock))
  assert.isFalse(yield* Lock.isLocked(lock))
})

test("98. scores do not add up either where the lock is acquired and released in between", function* (lock, seen) {
  const some = Effect.exit(Lock.withLock(Effect.sleep(15), lock, { waitTime: 30, leaseTime: 30_000 }))
  const thread = Effect.repeat(some, Schedule.recurs(49))
  const threads = yield* background(Effect.forEach([1, 2, 3, 4], () => thread, { concurrency: "unbounded" }))
  yield* Effect.repeat(
    Effect.flatMap(seen.scores, (scores) => Effect.sync(() => bounded(scores, 30_000))),
    Schedule.max([Schedule.spaced("20 millis"), Schedule.recurs(20)])
  )
  yield* Fiber.join(threads)
  assert.deepStrictEqual(yield* seen.scores, [])
})

test("99. scores do not add up either behind a waiter that has died", function* (lock, seen) {
  yield* held(lock, { leaseTime: 30_000 })
  yield* ghost(seen, patience, "leaseEnd")
  for (let i = 0; i < 10; i++) {
    const three = Array.from({ length: 3 }, () => Effect.flip(Lock.withLock(Effect.void, lock, { waitTime: 40 })))
    yield* Effect.all(three, { concurrency: "unbounded" })
    bounded(yield* seen.scores, 30_000)
  }
  yield* waiter(lock, seen)
  near(yield* seen.behindLease, [patience, 2 * patience])
})

testLive("89. with a prefix for all names the queue's key has it, and locking works", function* () {
  const lock = yield* fresh
  const seen = yield* observed(`app:${lock.name}`)
  yield* Effect.gen(function* () {
    const holder = yield* held(lock)
    const next = yield* waiter(lock, seen)
    yield* holder.letGo
    yield* until("the next is served", () => next.served.yes)
    yield* next.leave
  }).pipe(
    Effect.scoped,
    Effect.provide(Layer.provide(RedisLock.layerFromStore({ keyPrefix: "app:" }), storeAt(redisUrl)))
  )
})
