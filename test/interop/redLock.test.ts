/**
 * Redisson's RedLock and ours on the same three servers, which know nothing of each other.
 */
import { onlyMessages } from "../kit/onlyMessages.ts"
import { serviceOf } from "../kit/testStore.ts"
import { IoRedis } from "@effect-redis-lock/ioredis"
import { assert } from "@effect/vitest"
import { Effect, Fiber, Layer, Option, Schedule } from "effect"
import { Lock, type QuorumNotReached, RedisLock, RedLock } from "effect-redis-lock"
import * as Counter from "./Counter.ts"
import { eventually, longLease, Site, soon, waiting, watchdogLease, withRedissonOnThreeServers } from "./harness.ts"
import { freshName } from "../kit/names.ts"

const patient = { watchdogLeaseTime: watchdogLease, fallbackInterval: "1 hour" } as const

/** Clients of ours, one for each server. */
const clients = Effect.flatMap(Site, ({ servers }) =>
  Effect.forEach(servers!, ({ url }) =>
    serviceOf(Layer.provide(onlyMessages(patient)(RedisLock.layer(patient)), IoRedis.layer({ url })))
  )
)

interface Variant {
  readonly names: (stem: string) => ReadonlyArray<string>
  readonly ours: (
    names: ReadonlyArray<string>,
    services: ReadonlyArray<RedisLock.RedisLock["Service"]>
  ) => Lock.Lock<RedisLock.RedisLock, QuorumNotReached>
}

const variants: Record<string, Variant> = {
  "RedLock.make": {
    names: (stem) => [`${stem}:lock1`, `${stem}:lock2`, `${stem}:lock3`],
    ours: (names, services) => RedLock.make(names.map((name, i) => Lock.provide(Lock.make(name), services[i]!)))
  },
  "RedisLock.layerQuorum": {
    names: (stem) => [stem, stem, stem],
    ours: ([name]) => Lock.make(name!)
  }
}

/** One attempt of ours asks each of the servers. */
const attempts = 6

for (const [title, { names: namesOf, ours }] of Object.entries(variants)) {
  withRedissonOnThreeServers(`RedissonRedLock beside ${title}`, (test) => {
    const setUp = Effect.gen(function* () {
      const { java, nodes, servers } = yield* Site
      const services = yield* clients
      const stem = freshName("interop")
      const names = namesOf(stem)
      const lock = ours(names, services)
      const isDenied = Effect.map(Effect.scoped(Lock.tryScoped(lock)), (holding) => Option.isNone(holding))
      /** On which servers it is held by anybody. */
      const held = Effect.promise(() => Promise.all(names.map((name, i) => nodes[i]!.exists(name))))
      /** Ours is had and given back on a majority first, and on the others a moment later. */
      const comesToBeHeld = (...on: ReadonlyArray<number>) =>
        eventually(`held on ${on}`, held, (counts) => counts.join() === on.join())
      /** A lock of the third server alone. */
      const third = Lock.provide(Lock.make(names[2]!), services[2]!)
      return { held, comesToBeHeld, isDenied, java, lock, names, servers: servers!, stem, third }
    })

    test("Java holds, TypeScript is denied, waits and is woken", function* () {
      const { held, isDenied, java, lock, names, stem } = yield* setUp
      const [holder, other] = [java.thread("holder"), java.thread("other")]
      assert.isTrue(yield* holder.run("red", "", "acquire", { names, wait: longLease, lease: longLease }))
      assert.deepStrictEqual(yield* held, [1, 1, 1])
      assert.isTrue(yield* isDenied)
      const turn = yield* waiting(
        stem,
        Lock.withLock(other.run<boolean>("red", "", "tryAcquire", { names }), lock, { leaseTime: longLease }),
        { attempts }
      )
      yield* holder.run("red", "", "release", { names })
      assert.isFalse(yield* turn, "Java was let in beside TypeScript")
    })

    test("TypeScript holds, Java is denied, waits and is woken", function* () {
      const { isDenied, java, lock, names, stem } = yield* setUp
      const waiter = java.thread("waiter")
      const holding = yield* Lock.scoped(lock, { leaseTime: longLease })
      assert.isFalse(yield* waiter.run("red", "", "tryAcquire", { names }))
      const woken = yield* waiting(
        stem,
        waiter.run<boolean>("red", "", "acquire", { names, wait: longLease, lease: longLease })
      )
      yield* holding.release
      assert.isTrue(yield* woken)
      assert.isTrue(yield* isDenied)
      yield* waiter.run("red", "", "release", { names })
      assert.isFalse(yield* isDenied)
    })

    test("a majority held by Java keeps TypeScript out, and nothing of ours stays on the third server", function* () {
      const { comesToBeHeld, held, isDenied, java, lock, names, third } = yield* setUp
      const holder = java.thread("holder")
      const bystander = yield* Lock.scoped(third, { leaseTime: longLease })
      assert.isTrue(yield* holder.run("red", "", "acquire", { names, wait: 1000, lease: longLease }))
      yield* bystander.release
      assert.deepStrictEqual(yield* held, [1, 1, 0])
      assert.isTrue(yield* isDenied)
      yield* comesToBeHeld(1, 1, 0)
      const late = yield* Effect.flip(Lock.withLock(Effect.void, lock, { waitTime: 100 }))
      assert.strictEqual(late._tag, "LockTimeout")
      yield* comesToBeHeld(1, 1, 0)
      // votes that are split are asked again, without a message
      const turn = yield* Effect.forkScoped(Lock.withLock(Effect.succeed("in"), lock))
      yield* holder.run("red", "", "release", { names })
      assert.strictEqual(yield* soon("the lock is acquired", Fiber.join(turn)), "in")
    })

    test("a majority held by TypeScript keeps Java out; a minority held by either keeps nobody out", function* () {
      const { comesToBeHeld, java, lock, names, third } = yield* setUp
      const [one, two] = [java.thread("one"), java.thread("two")]
      const bystander = yield* Lock.scoped(third, { leaseTime: longLease })
      assert.isTrue(yield* one.run("red", "", "tryAcquire", { names }), "one server is no majority")
      yield* one.run("red", "", "release", { names })
      const holding = yield* Lock.scoped(lock, { leaseTime: longLease })
      yield* bystander.release
      yield* comesToBeHeld(1, 1, 0)
      assert.isFalse(yield* two.run("red", "", "tryAcquire", { names }))
      yield* holding.release

      yield* one.run("lock", names[0]!, "acquire", { lease: longLease })
      yield* comesToBeHeld(1, 0, 0)
      yield* Lock.withLock(
        Effect.gen(function* () {
          yield* comesToBeHeld(1, 1, 1)
          assert.isFalse(yield* two.run("red", "", "tryAcquire", { names }))
        }),
        lock,
        { leaseTime: longLease }
      )
      // Java's own is left alone
      yield* comesToBeHeld(1, 0, 0)
      yield* one.run("lock", names[0]!, "release")
    })

    test("TypeScript and Java contend for one RedLock, and no increment is lost", function* () {
      const { java, lock, names } = yield* setUp
      const counter = yield* Counter.make
      yield* Effect.all(
        [
          java.thread("one").run("red", "", "count", { names, port: counter.port, times: 30 }),
          Effect.repeat(Lock.withLock(counter.increment, lock), Schedule.recurs(29))
        ],
        { concurrency: "unbounded", discard: true }
      )
      assert.strictEqual(counter.value(), 60)
    })

    // the last one: the server stays down
    test("With one server of a RedLock killed each language excludes the other, and both work", function* () {
      const { isDenied, java, lock, names, servers } = yield* setUp
      const holder = java.thread("holder")
      yield* servers[2]!.kill
      assert.isTrue(yield* holder.run("red", "", "acquire", { names, wait: longLease, lease: longLease }))
      assert.isTrue(yield* isDenied)
      const turn = yield* Effect.forkScoped(Lock.scoped(lock, { leaseTime: longLease }))
      yield* holder.run("red", "", "release", { names })
      const holding = yield* soon("the lock is acquired", Fiber.join(turn))
      assert.isFalse(yield* holder.run("red", "", "tryAcquire", { names }))
      const next = yield* Effect.forkScoped(
        holder.run<boolean>("red", "", "acquire", { names, wait: longLease, lease: longLease })
      )
      yield* holding.release
      assert.isTrue(yield* soon("Java has the lock", Fiber.join(next)))
      assert.isTrue(yield* isDenied)
      yield* holder.run("red", "", "release", { names })
      assert.isFalse(yield* isDenied)
    })
  })
}
