/**
 * After a failover to a replica that had not heard of the latest releases, what was released is free.
 */
import { assert, describe } from "@effect/vitest"
import { Effect, Exit, Fiber, Option } from "effect"
import { Lock, LockStoreError, MultiLock, PermitId, PermitSemaphore, ReadWriteLock, Semaphore } from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { RecentReleases } from "../../packages/core/dist/internal/client/RecentReleases.js"
import { LockKeys } from "../../packages/core/dist/internal/store/keys.js"
import * as lock from "../../packages/core/dist/internal/store/operations/lock.js"
import * as permitSemaphore from "../../packages/core/dist/internal/store/operations/permitSemaphore.js"
import * as readWriteLock from "../../packages/core/dist/internal/store/operations/readWriteLock.js"
import { kinds } from "../contract/suite/kinds.ts"
import { background } from "../kit/background.ts"
import { replicatedStore } from "../kit/replicatedStore.ts"
import { forkHolder, sectionUntilTold } from "../kit/sections.ts"
import { clientId, listenTo } from "../kit/storeOperations.ts"
import { as, clientOf, memoryStore, type Service } from "../kit/testStore.ts"
import { noting, wrappedStore } from "../kit/wrappedStore.ts"
import { expectWarning } from "../run/logs.ts"
import { test } from "../kit/test.ts"

const long = { watchdogLeaseTime: "3 hours", label: "" } as const

/** Everything that can be held, by one client; and by another one, as far as it must be free for that. */
const held = [
  ...kinds.map(({ make, name, rival = make }) => ({
    name,
    section: Lock.withLock(make("a")),
    rival: Lock.withLock(rival("a"), { waitTime: "2 seconds" })
  })),
  {
    name: "a lock that its minHold keeps",
    section: Lock.withLock("a", { minHold: "1 second" }),
    rival: Lock.withLock("a", { waitTime: "2 seconds" })
  },
  {
    name: "a MultiLock",
    section: Lock.withLock(MultiLock.make(["a", "b"])),
    rival: Lock.withLock(MultiLock.make(["a", "b"]), { waitTime: "2 seconds" })
  },
  {
    name: "a PermitSemaphore",
    section: PermitSemaphore.withPermits(PermitSemaphore.make("a", { permits: 3 }), 3),
    rival: PermitSemaphore.withPermits("a", 3, { waitTime: "2 seconds" })
  },
  {
    name: "a Semaphore",
    section: Semaphore.withPermits(Semaphore.make("a", { permits: 3 }), 3),
    rival: Semaphore.withPermits("a", 3, { waitTime: "2 seconds" })
  }
]

/** In small steps, between which the fibers run. */
const pass = (millis: number) =>
  Effect.forEach(Array.from({ length: millis / 50 }), () => TestClock.adjust(50), { discard: true })

/** Two clients of a server with a replica; `cut` cuts the first one off. */
const site = Effect.gen(function* () {
  const server = yield* replicatedStore
  let isCut = false
  const store = wrappedStore(server.store, ({ fail, run }) => Effect.suspend(() => (isCut ? fail() : run())))
  return {
    server,
    one: yield* clientOf({ ...server, store }, long),
    other: yield* clientOf(server, long),
    cut: (is: boolean) => void (isCut = is)
  }
})

describe("a failover that forgets the latest releases", () => {
  for (const { name, rival, section } of held) {
    test(`What was released of ${name} is free a tenth of a second after a failover that forgets its release`, function* () {
      const { one, other, server } = yield* site
      const { end } = yield* sectionUntilTold((body) => as(one)(section(body)))
      yield* TestClock.adjust("1 second")
      yield* server.lag
      yield* end
      yield* server.failOver
      yield* TestClock.adjust("100 millis")
      // its first request is granted: it has no time to wait
      const asking = yield* background(as(other)(rival(Effect.void)))
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(asking.pollUnsafe(), Exit.void)
    })

    test(`A waiter for ${name} that asks right after a failover that forgets its release is let in within two seconds`, function* () {
      const { one, server } = yield* site
      const { end } = yield* sectionUntilTold((body) => as(one)(section(body)))
      yield* TestClock.adjust("1 second")
      yield* server.lag
      yield* end
      yield* server.failOver
      let requests = 0
      const store = wrappedStore(
        server.store,
        noting(({ operation }) => operation.endsWith("/acquire") && requests++)
      )
      const asking = yield* background(as(yield* clientOf({ ...server, store }, long))(rival(Effect.void)))
      yield* pass(2000)
      assert.isAbove(requests, 1, "it was not denied at first")
      assert.deepStrictEqual(asking.pollUnsafe(), Exit.void)
    })

    test(`What is released of ${name} again after a failover that forgets nothing stays as it was`, function* () {
      const { one, other, server } = yield* site
      const { end } = yield* sectionUntilTold((body) => as(one)(section(body)))
      yield* end
      // its minHold is over
      yield* TestClock.adjust("1 second")
      const second = yield* sectionUntilTold((body) => as(other)(rival(body)))
      yield* server.failOver
      yield* TestClock.adjust("1 second")
      yield* second.end
      if (name === "a Semaphore") assert.strictEqual(yield* as(one)(Semaphore.availablePermits("a")), 3)
      if (name === "a PermitSemaphore") assert.strictEqual(yield* as(one)(PermitSemaphore.availablePermits("a")), 3)
    })
  }

  for (const { name, section } of held) {
    test(`A release of ${name} that was never sent is not taken for a loss when the one that a reconnect repeats is first`, function* () {
      const { cut, one, server } = yield* site
      const { end } = yield* sectionUntilTold((body) => as(one)(section(body)))
      yield* TestClock.adjust("1 second")
      cut(true)
      const ending = yield* background(end)
      yield* TestClock.adjust(1)
      assert.isUndefined(ending.pollUnsafe())
      cut(false)
      yield* server.failOver
      yield* TestClock.adjust("2 seconds")
      assert.deepStrictEqual(ending.pollUnsafe(), Exit.void)
    })
  }

  for (const { name, section } of held) {
    test(`A section whose ${name.replace(/^an? /, "")} a failover has forgotten fails with LockLost, also where its release was not sent before the reconnect`, function* () {
      const { cut, one, other, server } = yield* site
      yield* server.lag
      const { end } = yield* sectionUntilTold((body) => as(one)(section(body)))
      cut(true)
      const ending = yield* background(Effect.flip(end))
      yield* TestClock.adjust(1)
      yield* server.failOver
      const second = yield* sectionUntilTold((body) => as(other)(section(body)))
      cut(false)
      yield* TestClock.adjust("6 seconds")
      assert.deepInclude(yield* Fiber.join(ending), { _tag: "LockLost", reason: "NotOwner" })
      yield* second.end
    })
  }

  for (const { make, name } of kinds.slice(0, 2)) {
    test(`A reconnect that gives ${name} back for the rest of its minHold is not taken for a loss when that is over`, function* () {
      const { cut, one, server } = yield* site
      yield* TestClock.adjust("1 second")
      const section = (body: Effect.Effect<void>) => Lock.withLock(body, make("a"), { minHold: "300 millis" })
      const { end } = yield* sectionUntilTold((body) => as(one)(section(body)))
      cut(true)
      const ending = yield* background(end)
      // its next try is due after the minHold
      yield* TestClock.adjust(200)
      cut(false)
      yield* server.failOver
      yield* pass(2000)
      assert.deepStrictEqual(ending.pollUnsafe(), Exit.void)
    })
  }

  test("Of the locks of a MultiLock, a reconnect that releases one hides the loss of no other", function* () {
    const { cut, one, other, server } = yield* site
    const { end } = yield* sectionUntilTold((body) => as(one)(Lock.withLock(body, MultiLock.make(["a", "b"]))))
    cut(true)
    const ending = yield* background(Effect.flip(end))
    yield* TestClock.adjust(1)
    yield* as(other)(Lock.forceRelease("b"))
    cut(false)
    yield* server.failOver
    yield* TestClock.adjust("6 seconds")
    assert.deepInclude(yield* Fiber.join(ending), { _tag: "LockLost", lock: "b", reason: "NotOwner" })
  })

  for (const [to, isOwn] of [
    ["the next waiter of its process", true],
    ["a waiter of another process", false]
  ] as const) {
    test(`A lock that a release has left to ${to} has the lease of that waiter again after a failover that knows the release alone`, function* () {
      const server = yield* replicatedStore
      const store = wrappedStore(server.store, ({ operation, run }) =>
        operation === "lock/release" ? Effect.tap(run(), server.lag) : run()
      )
      const one = as(yield* clientOf({ ...server, store }, long))
      const other = as(yield* clientOf(server, long))
      const first = yield* sectionUntilTold((body) => one(Lock.withLock(body, "a")))
      const next = yield* forkHolder((stay: (acquired: void) => Effect.Effect<void>) =>
        (isOwn ? one : other)(Lock.withLock(stay(undefined), "a"))
      )
      yield* TestClock.adjust(50)
      yield* first.end
      yield* next.entered
      yield* server.failOver
      yield* TestClock.adjust("5 seconds")
      assert.isUndefined(next.fiber.pollUnsafe(), "the section goes on")
      const rival = yield* (isOwn ? other : one)(Lock.withLockIfAvailable(Effect.void, "a"))
      assert.isTrue(Option.isNone(rival), "and nobody else gets in")
      yield* next.letGo
      yield* Fiber.join(next.fiber)
    })
  }

  // tries to give back a permit in use together with one that is free, and fails over to a replica for which both are in use
  for (const [title, isReplyLost] of [
    ["Permits that were not given back, as one of them was not held, are not given back after a failover", false],
    ["Permits of which a refused try was not answered at first are not given back after a failover", true]
  ] as const) {
    test(title, function* () {
      const server = yield* replicatedStore
      let isLost = isReplyLost
      const store = wrappedStore(server.store, ({ fail, operation, run }) =>
        operation === "permit_semaphore/try_release" && isLost ? Effect.andThen(run(), fail("TimedOut")) : run()
      )
      const semaphore = PermitSemaphore.make("a", { permits: 3 })
      const one = as(yield* clientOf({ ...server, store }, long))
      const other = as(yield* clientOf(server, long))
      const inUse = yield* other(PermitSemaphore.scoped(semaphore))
      const released = yield* other(PermitSemaphore.scoped(semaphore))
      yield* TestClock.adjust("1 second")
      yield* server.lag
      yield* released.release
      const tried = one(PermitId.tryRelease(semaphore, [...inUse.ids, ...released.ids]))
      if (isReplyLost) assert.propertyVal(yield* Effect.flip(tried), "reason", "TimedOut")
      isLost = false
      assert.isFalse(yield* tried)
      yield* server.failOver
      yield* pass(1000)
      assert.strictEqual(yield* one(PermitSemaphore.availablePermits(semaphore)), 2)
      assert.isTrue(yield* inUse.isHeld)
    })
  }

  test("Permits that were given back by their ids are free after a failover that forgets it", function* () {
    const server = yield* replicatedStore
    const semaphore = PermitSemaphore.make("a", { permits: 3 })
    const [one, other] = [as(yield* clientOf(server, long)), as(yield* clientOf(server, long))]
    const { ids } = yield* other(PermitSemaphore.scoped(semaphore, { permits: 2 }))
    yield* TestClock.adjust("1 second")
    yield* server.lag
    expectWarning(/^The scope of permits has closed, but giving them back went wrong/)
    assert.isTrue(yield* one(PermitId.tryRelease(semaphore, ids)))
    yield* server.failOver
    yield* pass(1000)
    assert.strictEqual(yield* one(PermitSemaphore.availablePermits(semaphore)), 3)
  })

  test("What was released is free also where it takes 40 seconds until a replica has taken over", function* () {
    const { one, other, server } = yield* site
    const semaphore = Semaphore.make("a", { permits: 3 })
    const { end } = yield* sectionUntilTold((body) => as(one)(Semaphore.withPermits(semaphore, 3)(body)))
    yield* server.lag
    yield* end
    // Sentinel waits for 30 seconds by default, and an isolated master answers all the time
    for (let second = 1; second <= 40; second++) {
      yield* as(one)(Lock.withLock(Effect.void, "b"))
      yield* TestClock.adjust("1 second")
    }
    yield* server.failOver
    yield* pass(2000)
    assert.strictEqual(yield* as(other)(Semaphore.availablePermits(semaphore)), 3)
  })

  test("A lock that its minHold keeps stays taken for as long as it would have without the failover", function* () {
    const { one, other, server } = yield* site
    const { end } = yield* sectionUntilTold((body) => as(one)(Lock.withLock("a", { minHold: "10 seconds" })(body)))
    yield* server.lag
    yield* end
    yield* TestClock.adjust("5 seconds")
    yield* server.failOver
    const waiting = yield* background(as(other)(Lock.withLock(Effect.void, "a")))
    yield* TestClock.adjust("4900 millis")
    assert.isUndefined(waiting.pollUnsafe())
    yield* pass(2000)
    assert.deepStrictEqual(waiting.pollUnsafe(), Exit.void)
  })

  for (const { make, name } of [
    { name: "a Lock", make: () => Lock.make("a") },
    { name: "a write lock", make: () => ReadWriteLock.make("a").writeLock },
    { name: "a MultiLock", make: () => MultiLock.make(["a", "b"]) }
  ]) {
    for (const isFirst of [true, false]) {
      const order = isFirst ? "before" : "after"
      test(`${name} that a client left to its own next waiter goes to the waiters of others at once after a failover that forgets it, if that client is connected ${order} the last holder`, function* () {
        const server = yield* replicatedStore
        const connected = yield* Effect.forEach([1, 2, 3], () => clientOf(server, long))
        const [one, other] = isFirst ? connected : connected.toReversed()
        const third = yield* clientOf(server, long)
        const entered: Array<string> = []
        const hold = (client: Service, who: string) =>
          sectionUntilTold((body) =>
            Effect.sync(() => entered.push(who)).pipe(Effect.andThen(body), Lock.withLock(make()), as(client))
          )
        const before = yield* hold(other!, "other")
        // a process with two waiters, behind which another one waits
        const queue = (client: Service, who: string) =>
          Effect.sync(() => entered.push(who)).pipe(Lock.withLock(make()), as(client), background)
        const first = yield* forkHolder((stay) => as(one!)(Lock.withLock(stay(undefined), make())))
        yield* pass(50)
        yield* queue(one!, "second of one")
        yield* pass(50)
        yield* queue(third, "third")
        yield* pass(50)
        yield* server.lag
        yield* before.end
        yield* first.entered
        yield* first.letGo
        yield* pass(50)
        entered.length = 0
        yield* server.failOver
        yield* queue(third, "third, again")
        yield* pass(500)
        assert.include(entered, "third, again")
      })
    }
  }
})

/** What a client has released, at a time that the test sets, and whose releases it would repeat after a reconnect. */
const releasesOf = () => {
  let millis = 1e9
  let repeating: Fiber.Fiber<void> | undefined
  const keys = new LockKeys("a")
  const sent: Array<number> = []
  const refused = new Set<number>()
  const fork = (effect: Effect.Effect<void>) => (repeating = Effect.runFork(effect))
  const releases = new RecentReleases(
    { options: { releaseTimeoutMillis: 5000 }, store: { publish: "PUBLISH" }, now: () => millis, fork } as never,
    (command) =>
      Effect.suspend(() => {
        const owner = Number(command.args[0])
        sent.push(owner)
        if (!refused.has(owner)) return Effect.succeed(command.operation.reply(1))
        millis += 10
        return Effect.fail(new LockStoreError({ operation: "release", lock: "a", reason: "NotConnected" }))
      })
  )
  return {
    /** The owners that a server which is away still has; each try takes ten milliseconds. */
    refused,
    /** What was sent the last time, in this order. */
    sent,
    /** Keeps the lock of an owner for a while. */
    keep: (owner: number, millis: number) =>
      releases.add(lock.keep(keys, String(owner), millis, { publish: "PUBLISH", queued: false })),
    /** Releases what belongs to the owner of that number, so many milliseconds after what was before. */
    release: (owner: number, laterMillis: number) => {
      millis += laterMillis
      releases.add(lock.release(keys, String(owner), "PUBLISH"))
    },
    /** Gives back so many permits with ids. */
    giveBack: (count: number) => {
      millis++
      const ids = Array.from({ length: count }, (_, i) => `${millis}${i}`.padStart(32, "0"))
      releases.add(permitSemaphore.release("a", ids, { publish: "PUBLISH", handsOver: false }))
    },
    pass: (passedMillis: number) => (millis += passedMillis),
    hasGivenBack: (owner: number) => releases.hasGivenBack(lock.release(keys, String(owner), "PUBLISH")),
    /** The numbers of the owners, in order. */
    repeated: Effect.gen(function* () {
      sent.length = 0
      releases.repeat([])
      yield* Fiber.join(repeating!)
      return sent.toSorted((one, other) => one - other)
    })
  }
}

const range = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => from + index)

describe("the releases that a client remembers", () => {
  test("A client that releases without a pause remembers the last 5 000 releases, and never more than 10 000", function* () {
    const { release, repeated } = releasesOf()
    for (let released = 0; released < 32_000;) {
      for (let i = 0; i < 2000; i++) release(released++, 1)
      const owners = yield* repeated
      assert.isAtMost(owners.length, 10_000)
      assert.deepStrictEqual(owners.slice(-5000), range(Math.max(0, released - 5000), released))
    }
  })

  test("What a reconnect has given back is known for a minute at least, however many releases follow", function* () {
    const { giveBack, hasGivenBack, pass, release, repeated } = releasesOf()
    release(1, 0)
    yield* repeated
    for (let i = 0; i < 50; i++) giveBack(10_000)
    assert.isTrue(hasGivenBack(1))
    for (let i = 0; i < 3; i++) {
      pass(60_000)
      giveBack(10_000)
    }
    assert.isFalse(hasGivenBack(1))
  })

  test("A release that was retried during an outage is repeated once after the reconnect, not once for each try", function* () {
    const { keep, release, repeated } = releasesOf()
    for (const owner of [1, 2, 1, 1, 2, 1]) release(owner, 100)
    for (const millis of [300, 200, 100]) keep(3, millis)
    assert.deepStrictEqual(yield* repeated, [1, 2, 3])
  })

  test("Releases that are tried again and again during an outage do not push out those before them", function* () {
    const { release, repeated } = releasesOf()
    for (let owner = 0; owner < 1000; owner++) release(owner, 1)
    for (let round = 0; round < 40; round++) {
      for (let owner = 1000; owner < 1350; owner++) release(owner, 1)
    }
    assert.deepStrictEqual(yield* repeated, range(0, 1350))
  })

  test("Releases that a server refuses which is still away do not hold up those of others", function* () {
    const { refused, release, repeated, sent } = releasesOf()
    for (let owner = 0; owner < 400; owner++) release(owner, 1)
    for (let owner = 100; owner < 400; owner++) refused.add(owner)
    yield* repeated
    assert.sameMembers(sent.slice(0, 400), range(0, 400))
    assert.lengthOf(sent, 400 + refused.size)
  })

  test("A client that gives back thousands of permits at a time remembers at most a hundred thousand of them", function* () {
    const { giveBack, repeated } = releasesOf()
    for (let released = 1; released <= 100; released++) {
      giveBack(10_000)
      const times = (yield* repeated).length
      assert.isAtLeast(times, Math.min(released, 5))
      assert.isAtMost(times, 10)
    }
  })

  test("A client that seldom releases remembers the releases of the last minute, and none for two minutes", function* () {
    const { pass, release, repeated } = releasesOf()
    for (let released = 1; released <= 600; released++) {
      release(released, 1000)
      if (released % 50 !== 0) continue
      const owners = yield* repeated
      assert.isAtMost(owners.length, 120)
      assert.deepStrictEqual(owners.slice(-60), range(Math.max(1, released - 59), released + 1))
    }
    pass(59_000)
    assert.include(yield* repeated, 600)
    pass(61_000)
    assert.deepStrictEqual(yield* repeated, [])
  })

  const keys = new LockKeys("a")
  const [one, other] = [`${clientId("a")}:1`, `${clientId("b")}:2`]
  const terms = { leaseMillis: 2000, tokenKey: keys.token, tokenLifeMillis: 60_000 }
  const place = { hasAsked: false, placeAgeMillis: 0 }
  const asked = { keys, leaseMillis: 60_000, tokenKey: keys.token, tokenLifeMillis: 60_000, place }
  for (const { acquire, channel, name, release, side } of [
    {
      name: "a Lock",
      side: 0,
      channel: keys.channel,
      acquire: (owner: string) => lock.acquire({ ...asked, owner }),
      release: lock.release(keys, one, "", terms)
    },
    {
      name: "a write lock",
      side: 1,
      channel: keys.readWriteChannel,
      acquire: (owner: string) => readWriteLock.acquireWrite({ ...asked, ...place, owner }, owner),
      release: readWriteLock.releaseWrite(keys, one, "", "", terms)
    }
  ]) {
    test(`A release of ${name} that left it to its own client hands it over to another, with all that one needs, when it is repeated`, function* () {
      const store = yield* memoryStore(0)
      let repeating: Fiber.Fiber<void> | undefined
      const run = Effect.runForkWith(yield* Effect.context<never>())
      const releases = new RecentReleases(
        {
          options: { releaseTimeoutMillis: 0 },
          store,
          now: () => 0,
          fork: (effect: Effect.Effect<void>) => (repeating = run(effect))
        } as never,
        (command) => Effect.tapError(store.run(command), Effect.die)
      )
      yield* store.run(acquire(one))
      yield* store.run(acquire(other))
      const { message } = yield* listenTo(store, `${channel}:${clientId("b")}`)
      releases.add(release)
      releases.repeat([])
      assert.match(yield* message, new RegExp(`^${side} 2 \\d+ \\d+ 2000$`))
      // and does nothing the next time
      releases.repeat([])
      assert.deepStrictEqual(yield* Fiber.await(repeating!), Exit.void)
    })
  }
})
