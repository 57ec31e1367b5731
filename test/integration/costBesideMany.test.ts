/**
 * What an operation costs the server, however many others wait, read or hold permits: it runs as many commands inside the server
 * beside thousands as beside a few, and none that returns all of them.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { assert } from "@effect/vitest"
import { Effect, Fiber, Layer, type Scope, Stream } from "effect"
import { FairLock, Lock, LockStore, ReadWriteLock } from "effect-redis-lock"
import type { Redis } from "ioredis"
import { hold } from "../faults/kinds.ts"
import { type Client, untoldClient } from "../kit/clients.ts"
import { eventually } from "../kit/eventually.ts"
import { commandsOf, sumOf } from "../kit/server/commandsOf.ts"
import { onServer, type Site } from "../kit/server/onServer.ts"
import { runOperation } from "../kit/storeOperations.ts"
import { testLive } from "../kit/test.ts"

const many = 5000
/** Of those that a client of ours acquires one by one. */
const manyReaders = 1000

/** The commands of each operation. */
type Costs = Record<string, ReadonlyArray<string>>

/** Measures operations on a server of their own. */
const costsOf = <E>(body: (site: Site & { readonly costs: Costs }) => Effect.Effect<unknown, E, Scope.Scope>) =>
  Effect.gen(function* () {
    const costs: Costs = {}
    yield* Effect.scoped(Effect.flatMap(onServer(), (site) => body({ ...site, costs })))
    return costs
  })

const ask = <A>(answer: () => Promise<A>) => Effect.promise(answer)
const minutes = (n: number) => n * 60_000

/** Commands that return everything that is kept under a key, or that are repeated for each. Other ranges are of the first or the last. */
const walks = /hgetall|hkeys|hvals|hscan|zscan|zrangebyscore|zremrangebyscore|smembers/
/** The same for a fair lock, which has one holder. */
const fairWalks = /zrange|zincrby|hgetall/

/** Asks the store directly, under one name. */
const storeAt = Effect.fnUntraced(function* (url: string) {
  const context = yield* Layer.build(LockStore.layerRedis.pipe(Layer.provide(IoRedis.layer({ url }))))
  const store = LockStore.LockStore.pipe(Effect.provideContext(context))
  return (operation: LockStore.Operation, keys: ReadonlyArray<string>, args: ReadonlyArray<string | number> = []) =>
    Effect.flatMap(store, (store) => runOperation(store, operation, keys, args))
})

/** A thread in Java. */
const java = "2a5b1f3e-0000-4000-8000-000000000001:7"

const clientOf = (number: number) => `00000000-0000-4000-8000-${String(number).padStart(12, "0")}`
const ownerOf = (waiter: number) => `${clientOf(waiter % 10)}:${waiter}`

const fair = {
  lock: "page",
  token: "redisson_lock_token:{page}",
  queue: "redisson_lock_queue:{page}",
  timeouts: "redisson_lock_timeout:{page}",
  clients: "effect_redis_lock_clients:{page}",
  channel: "redisson_lock__channel:{page}"
}

/** What holders and waiters of a fair lock ask of its store. */
const fairLock = Effect.fnUntraced(function* (url: string) {
  const { channel, clients, lock, queue, timeouts, token } = fair
  const run = yield* storeAt(url)
  return {
    acquire: (owner: string, leaseMillis = minutes(10)) =>
      run(
        "fair_lock/acquire",
        [lock, token, queue, timeouts, clients, channel],
        [owner, leaseMillis, 86_400_000, 300_000, owner.slice(0, 36), 600_000, "PUBLISH"]
      ),
    release: (owner: string) => run("fair_lock/release", [lock, channel, queue, timeouts, clients], [owner, "PUBLISH"]),
    refresh: (client: string, waiting: ReadonlyArray<string>, gone: ReadonlyArray<string> = []) =>
      run(
        "fair_lock/refresh",
        [lock, channel, queue, timeouts, clients],
        ["PUBLISH", 300_000, client, 600_000, 1, waiting.length, ...waiting, ...gone]
      ),
    forceRelease: run("fair_lock/force_release", [lock, channel, queue, timeouts, clients], ["PUBLISH"])
  }
})

/** The commands of everything that happens at a fair lock for which so many wait. */
const besideWaiters = (waiters: number) =>
  costsOf(({ costs, redis, server }) =>
    Effect.gen(function* () {
      const { clients, queue, timeouts } = fair
      const { acquire, forceRelease, refresh, release } = yield* fairLock(server.url)
      const measure = Effect.fnUntraced(function* <A, E, R>(what: string, self: Effect.Effect<A, E, R>) {
        // however long this machine stands still, nothing says that the server did
        yield* ask(() => redis.zrem(clients, "seen"))
        costs[what] = (yield* commandsOf(redis, self)).commands
      })

      yield* acquire(ownerOf(0))
      yield* Effect.forEach(Array.from({ length: waiters }), (_, i) => acquire(ownerOf(i + 1)), { concurrency: 50 })
      assert.strictEqual(yield* ask(() => redis.llen(queue)), waiters)
      // scripts are loaded, and the head's score is as it will be
      yield* refresh(clientOf(1), [ownerOf(1)])
      yield* acquire(ownerOf(waiters + 1))
      yield* release(ownerOf(waiters + 1))

      yield* measure("a waiter that comes", acquire(ownerOf(waiters + 1)))
      yield* measure("a waiter in the middle that leaves", release(ownerOf(5)))
      yield* measure("the last waiter leaves", release(ownerOf(waiters + 1)))
      yield* measure("a report", refresh(clientOf(2), [ownerOf(2)]))
      yield* measure("a report of a place that is gone", refresh(clientOf(2), [ownerOf(2)], [ownerOf(6)]))
      const head = (yield* ask(() => redis.lindex(queue, 0)))!
      const second = (yield* ask(() => redis.lindex(queue, 1)))!
      yield* measure("a release", release(ownerOf(0)))
      yield* measure("the next is served", acquire(head))
      // Java's scripts see a head whose time is that of one that has just asked
      const [seconds] = yield* ask(() => redis.time())
      const left = Number(yield* ask(() => redis.zscore(timeouts, second))) - Number(seconds) * 1000
      assert.isTrue(left > 100_000 && left <= 901_000, `${left} ms`)
      // a longer lease: in the millisecond of the grant the same one would lengthen nothing
      yield* measure("a waiter that is served already asks again", acquire(head, minutes(11)))
      // the dead: of a client that does not report, and a thread in Java
      yield* ask(() => redis.zadd(clients, 1, second.slice(0, 36)))
      yield* ask(() => redis.zadd(timeouts, "XX", 1, second))
      yield* ask(async () => {
        await redis.linsert(queue, "AFTER", second, java)
        await redis.zadd(timeouts, 1, java)
      })
      yield* measure("a release that passes over two dead waiters", release(head))
      assert.notInclude(yield* ask(() => redis.lrange(queue, 0, 1)), java)
      yield* measure("a forced release", forceRelease)
      yield* ask(() => redis.del(queue, timeouts, clients))
    })
  )

const { readLock, writeLock } = ReadWriteLock.make("page")

/** A reader of its own, for as long as the test's scope is open or until it is released. */
const read = (who: Client, millis: number) => hold(who, readLock, { leaseTime: millis })

/** The lock has about so long to live, in milliseconds. */
const assertLives = Effect.fnUntraced(function* (redis: Redis, millis: number) {
  const left = yield* ask(() => redis.pttl("page"))
  assert.isTrue(left > millis - minutes(1) && left <= millis + 5, `${left} instead of ${millis}`)
})

const javaHold = `{page}:${java}:rwlock_timeout:1`

/** The commands of whatever a reader or a writer does beside so many other readers. */
const besideReaders = (others: number, has: { readonly javaReader: boolean }) =>
  costsOf(({ costs, redis, server }) =>
    Effect.gen(function* () {
      const mine = yield* untoldClient(server)
      yield* Effect.forEach(Array.from({ length: others }), () => read(mine, minutes(10)), { concurrency: 50 })
      if (has.javaReader) {
        yield* ask(async () => {
          await redis.hset("page", java, "1")
          await redis.set(javaHold, "1", "PX", minutes(8))
        })
      }
      assert.strictEqual(yield* ask(() => redis.hlen("page")), others + (has.javaReader ? 2 : 1))
      // scripts are loaded
      const first = yield* read(mine, minutes(1))
      yield* first.release
      const measure = Effect.fnUntraced(function* <A, E, R>(what: string, self: Effect.Effect<A, E, R>) {
        const { commands, result } = yield* commandsOf(redis, self)
        costs[what] = commands
        return result
      })
      const denied = mine.run(Effect.exit(Lock.withLock(Effect.void, writeLock, { waitTime: 0 })))
      yield* denied
      yield* measure("a writer that asks", denied)
      const reader = yield* measure("a reader that comes", read(mine, minutes(20)))
      yield* measure("a renewal", reader.renew(minutes(30)))
      yield* assertLives(redis, minutes(30))
      yield* measure("a reader that leaves", reader.release)
      // of many readers nobody looks for the longest of Java's
      yield* assertLives(redis, minutes(has.javaReader && others > 100 ? 30 : 10))
      const twice = Effect.gen(function* () {
        const outer = yield* Lock.scoped(readLock, { leaseTime: minutes(20) })
        const inner = yield* Lock.scoped(readLock, { leaseTime: minutes(40) })
        yield* inner.release
        yield* outer.release
      })
      yield* measure("a reader that re-enters and leaves", mine.run(Lock.withOwner(Effect.scoped(twice))))
      if (has.javaReader) {
        yield* ask(async () => {
          await redis.hdel("page", java)
          await redis.del(javaHold)
        })
      }
    })
  )

const permits = { counter: "pool", ids: "{pool}:timeout", channel: "redisson_sc:{pool}" }
const idOf = (number: number) => number.toString(16).padStart(32, "0")

/** The commands of whatever happens at a permit semaphore of which so many permits are held, or were not given back in time. */
const besidePermits = (others: number, state: "held" | "expired") =>
  costsOf(({ costs, redis, server }) =>
    Effect.gen(function* () {
      const { channel, counter, ids } = permits
      const run = yield* storeAt(server.url)
      const at = (operation: LockStore.Operation, ...args: ReadonlyArray<string | number>) =>
        run(operation, [counter, ids, channel], args)
      const request = at("permit_semaphore/acquire", "", 600_000, "PUBLISH", idOf(1), idOf(2))
      const operations = [
        ["a request", request],
        ["a request that is sent twice", request],
        ["a renewal", run("permit_semaphore/renew", [ids], [600_000, [1, 2].map(idOf).join(",")])],
        ["a look at a lease", run("permit_semaphore/lease", [ids], [idOf(1)])],
        ["another lease", run("permit_semaphore/update_lease", [ids], [idOf(1), 600_000])],
        ["a count", at("permit_semaphore/count", "PUBLISH")],
        ["more permits", at("permit_semaphore/add", "", 1, "PUBLISH")],
        ["another number of permits", at("permit_semaphore/set", 9000, 1, "PUBLISH")],
        ["a release", at("permit_semaphore/release", "PUBLISH", idOf(1))],
        ["a release of all or none", at("permit_semaphore/try_release", "PUBLISH", idOf(2))],
        ["a request in vain", request]
      ] as const
      // the first time only loads the scripts
      for (const isMeasured of [false, true]) {
        yield* ask(() => redis.set(counter, 8000))
        for (const [what, self] of operations) {
          if (what === "a request in vain") yield* ask(() => redis.set(counter, -20_000))
          yield* ask(async () => {
            const score = state === "held" ? Date.now() + minutes(10) : 1
            const members = Array.from({ length: isMeasured ? others : 1 }, (_, i) => [
              score,
              Buffer.from(idOf(1000 + i), "hex")
            ])
            await redis.zadd(ids, ...(members.flat() as [number, Buffer]))
          })
          costs[what] = (yield* commandsOf(redis, self)).commands
        }
        yield* ask(() => redis.del(counter, ids))
      }
    })
  )

/** The commands of whatever happens at a semaphore of which so many permits are taken, and at a latch with so many counts. */
const besideCounts = (others: number) =>
  costsOf(({ costs, redis, server }) =>
    Effect.gen(function* () {
      const run = yield* storeAt(server.url)
      const grant = (number: number) => `effect_redis_lock_grant:{pool}:${number}`
      const take = (number: number, wanted = 1) =>
        run(
          "semaphore/acquire",
          ["pool", "{pool}:timeout", grant(number), "redisson_sc:{pool}"],
          [9000, wanted, 600_000, "PUBLISH"]
        )
      const giveBack = (number: number) =>
        run("semaphore/return", ["pool", grant(number), "redisson_sc:{pool}"], [1, 0, "PUBLISH"])
      const latch = ["door", "redisson_countdownlatch__channel__{door}"]
      const operations = [
        ["a request of permits", take(0)],
        ["a request that is sent twice", take(0)],
        ["a request in vain", take(1, 20_000)],
        ["permits given back", giveBack(0)],
        ["a look at a semaphore", run("semaphore/available", ["pool"])],
        ["more permits", run("semaphore/add", ["pool", "{pool}:timeout", "redisson_sc:{pool}"], ["", 1, 1, "PUBLISH"])],
        ["a latch is set", run("latch/set", latch, [others, "PUBLISH"])],
        ["a latch is counted down", run("latch/count_down", latch, ["PUBLISH"])],
        ["a look at a latch", run("latch/count", ["door"])],
        ["a latch is removed", run("latch/delete", latch, ["PUBLISH"])]
      ] as const
      for (const isMeasured of [false, true]) {
        yield* Effect.forEach(Array.from({ length: isMeasured ? others : 1 }), (_, i) => take(1000 + i), {
          concurrency: 50
        })
        for (const [what, self] of operations) costs[what] = (yield* commandsOf(redis, self)).commands
      }
      yield* ask(() => redis.flushall())
    })
  )

/** The commands of whatever happens at a semaphore for whose permits so many clients wait, of which each listens. */
const besidePlaces = (others: number) =>
  costsOf(({ costs, redis, server }) =>
    Effect.gen(function* () {
      const run = yield* storeAt(server.url)
      const channel = "redisson_sc:{pool}"
      const tells = [channel, "effect_redis_lock_permit_places:{pool}", "effect_redis_lock_permit_wants:{pool}"]
      const listener = redis.duplicate()
      yield* Effect.addFinalizer(() => Effect.sync(() => listener.disconnect()))
      const request = (number: number, wanted: number, isNew: 0 | 1) =>
        run(
          "semaphore/acquire",
          ["pool", "{pool}:timeout", `effect_redis_lock_grant:{pool}:${number}`, ...tells],
          [1, wanted, 600_000, "PUBLISH", clientOf(number), wanted, 0, 0, 0, isNew]
        )
      const giveBack = run(
        "semaphore/return",
        ["pool", "effect_redis_lock_grant:{pool}:0", ...tells],
        [1, 0, "PUBLISH"]
      )
      const operations = [
        ["a request in vain", request(9999, 1, 1)],
        ["a place given up", run("semaphore/leave", ["pool", ...tells], [clientOf(9999), "PUBLISH"])],
        ["permits given back", giveBack],
        ["a request of the one who was told", request(1000, 1, 0)],
        ["more permits", run("semaphore/add", ["pool", "{pool}:timeout", ...tells], ["", 1, 1, "PUBLISH"])]
      ] as const
      for (const isMeasured of [false, true]) {
        const clients = Array.from({ length: isMeasured ? others : 10 }, (_, i) => 1000 + i)
        yield* ask(() => listener.subscribe(...clients.map((number) => `${channel}:${clientOf(number)}`)))
        yield* request(0, 1, 1)
        yield* Effect.forEach(clients, (number) => request(number, 1, 1), { concurrency: 50 })
        for (const [what, self] of operations) costs[what] = (yield* commandsOf(redis, self)).commands
        yield* ask(() => redis.flushall())
      }
    })
  )

const sameCommands = (
  what: string,
  few: number,
  beside: (others: number) => Effect.Effect<Costs, unknown, Scope.Scope>,
  { most = many, never = walks } = {}
) =>
  testLive(`${what} costs the server the same commands beside ${most} as beside ${few}`, function* () {
    const costs = yield* beside(few)
    assert.deepStrictEqual(yield* beside(most), costs)
    for (const command of Object.values(costs).flat()) assert.notMatch(command, never)
  })

// of fewer, fewer than the eight are left whose scores are set
sameCommands("Whatever happens at a fair lock with waiters", 20, besideWaiters, { never: fairWalks })
sameCommands(
  "A reader or a writer of a lock with readers",
  10,
  (others) => besideReaders(others, { javaReader: false }),
  { most: manyReaders }
)
sameCommands("Whatever happens at a permit semaphore with held permits", 10, (others) => besidePermits(others, "held"))
sameCommands("Whatever happens at a permit semaphore with expired permits", 10, (others) =>
  besidePermits(others, "expired")
)
sameCommands("Whatever happens at a semaphore with taken permits, or at a latch,", 10, besideCounts)
sameCommands("Whatever happens at a semaphore for whose permits clients wait", 10, besidePlaces)

testLive(
  "Beside a Java reader and any number of others, no operation of a reader or a writer asks after more than a hundred",
  function* () {
    const has = { javaReader: true }
    const few = yield* besideReaders(10, has)
    const some = yield* besideReaders(101, has)
    assert.deepStrictEqual(yield* besideReaders(manyReaders, has), some)
    for (const [what, commands] of Object.entries(some)) {
      assert.isAtMost(sumOf(commands), 60, what)
      for (const command of commands) assert.notMatch(command, walks)
    }
    assert.include(few["a reader that leaves"]!, "1 hgetall")
  }
)

testLive(
  "A waiter behind thousands of dead ones of a fair lock is served, and no script passes over more than a hundred",
  function* () {
    const { redis, server } = yield* onServer()
    const { clients, queue } = fair
    const { acquire, refresh, release } = yield* fairLock(server.url)
    const dead = clientOf(1)
    yield* acquire(ownerOf(0))
    yield* Effect.forEach(Array.from({ length: many }), (_, i) => acquire(`${dead}:${i}`), { concurrency: 50 })
    yield* ask(() => redis.zadd(clients, 1, dead))
    const { commands } = yield* commandsOf(redis, refresh(clientOf(2), []))
    assert.strictEqual(yield* ask(() => redis.llen(queue)), many - 100)
    // four for each of the dead, and what a report costs otherwise
    assert.isAtMost(sumOf(commands), 600)
    const mine = yield* untoldClient(server)
    const section = Lock.withLock(Effect.succeed("served"), FairLock.make(fair.lock))
    const waiting = yield* Effect.forkChild(mine.run(section))
    yield* eventually(
      "it waits",
      () => redis.lrange(queue, -1, -1),
      ([last]) => last !== undefined && !last.startsWith(dead)
    )
    yield* release(ownerOf(0))
    assert.strictEqual(yield* Fiber.join(waiting), "served")
  }
)

testLive(
  "Of expired permits a command gives back a thousand at most, or as many as it asks for, and counts the others as free",
  function* () {
    const { redis, server } = yield* onServer()
    const { channel, counter, ids } = permits
    const run = yield* storeAt(server.url)
    const at = (operation: LockStore.Operation, ...args: ReadonlyArray<string | number>) =>
      run(operation, [counter, ids, channel], args)
    yield* ask(async () => {
      await redis.set(counter, 1)
      const expired = Array.from({ length: many }, (_, i) => [1, Buffer.from(idOf(1000 + i), "hex")])
      await redis.zadd(ids, ...(expired.flat() as [number, Buffer]))
    })
    assert.deepStrictEqual<unknown>(yield* at("permit_semaphore/count", "PUBLISH"), [many + 1, 0])
    assert.strictEqual(yield* ask(() => redis.zcard(ids)), many - 1000)
    assert.strictEqual(yield* ask(() => redis.get(counter)), "1001")
    // one that is left has ended all the same
    const left = idOf(1000 + many - 1)
    assert.strictEqual<unknown>(yield* at("permit_semaphore/try_release", "PUBLISH", left), 0)
    const wanted = Array.from({ length: 3500 }, (_, i) => idOf(100_000 + i))
    // more than it asks for have ended, but it would leave the number below zero: so it is to ask again at once
    yield* ask(() => redis.decrby(counter, 4000))
    const ask500 = at("permit_semaphore/acquire", "", 600_000, "PUBLISH", ...wanted.slice(0, 500))
    assert.deepStrictEqual<unknown>(yield* ask500, [0, -999, 0, 2000])
    yield* ask(() => redis.incrby(counter, 4000))
    assert.deepStrictEqual<unknown>(
      yield* at("permit_semaphore/acquire", "", 600_000, "PUBLISH", ...wanted),
      [1, 1501, -1]
    )
    assert.deepStrictEqual<unknown>(yield* at("permit_semaphore/count", "PUBLISH"), [1501, 3500])
    yield* ask(() => redis.del(counter, ids))
  }
)

testLive("A look at what is held does not read the large hashes of an application", function* () {
  const { redis, server } = yield* onServer()
  const client = yield* untoldClient(server)
  const fields = Array.from({ length: many }, (_, i) => [`field ${i}`, "value"])
  yield* ask(() => redis.hset("page", fields.flat()))
  const look = Effect.andThen(Lock.inspect("page"), Stream.runCollect(Lock.list()))
  const { commands, result } = yield* commandsOf(redis, client.run(look))
  assert.deepStrictEqual(result, [])
  assert.notMatch(commands.join(), /hgetall/)
  assert.strictEqual((yield* client.run(Lock.inspect("page"))).kind, "other")
  yield* ask(() => redis.del("page"))
})
