/**
 * Elections, work that is done once and schedules that a majority of servers decides, while one server after the other is down.
 */
import { assert } from "@effect/vitest"
import { Cron, DateTime, Effect, Fiber, Layer, Option, Schema } from "effect"
import { DistributedCron, LeaderElection, RunOnce } from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { background } from "../kit/background.ts"
import { expectWarning } from "../run/logs.ts"
import { as, quorumOf, testStore, testStores } from "../kit/testStore.ts"
import { test } from "../kit/test.ts"

const options = { fallbackInterval: "1 second", watchdogLeaseTime: "3 seconds" } as const

const unheard = /^No wake-up signals from one server of the quorum/

/** Waits for a fiber, letting time pass. */
const joined = Effect.fnUntraced(function* <A, E>(fiber: Fiber.Fiber<A, E>) {
  while (fiber.pollUnsafe() === undefined) yield* TestClock.adjust("500 millis")
  return yield* Fiber.join(fiber)
})

test("While one of three servers is down, whichever it is, a quorum elects one leader at a time", function* () {
  expectWarning(unheard)
  const stores = yield* testStores(3)
  const services = [yield* quorumOf(stores, options), yield* quorumOf(stores, options)]
  const election = LeaderElection.make("election", { value: Schema.Number })
  let leading = 0
  const terms: Array<bigint> = []
  const lead = (number: number) =>
    Effect.gen(function* () {
      const { ensureLeading, term } = yield* LeaderElection.currentLeadership(election)
      assert.strictEqual(++leading, 1)
      terms.push(term)
      yield* Effect.sleep("4 seconds")
      yield* ensureLeading
      const seen = Option.getOrThrow(yield* LeaderElection.leader(election))
      assert.deepStrictEqual(seen.value, Option.some(number))
      assert.strictEqual(seen.term, term)
      leading--
    }).pipe(LeaderElection.whileLeader(election, { proclaim: number }))
  for (const store of stores) {
    store.isDown = true
    const candidates = yield* Effect.forEach(services, (service, number) =>
      background(as(service)(Effect.andThen(lead(number), lead(number))))
    )
    for (const candidate of candidates) yield* joined(candidate)
    store.isDown = false
  }
  assert.strictEqual(terms.length, 12)
  assert.deepStrictEqual(
    terms,
    terms.toSorted((a, b) => (a < b ? -1 : 1))
  )
})

test("While one of three servers is down, a quorum has work done once, and keeps its result when another is down", function* () {
  expectWarning(unheard)
  const stores = yield* testStores(3)
  const services = [yield* quorumOf(stores, options), yield* quorumOf(stores, options)]
  const once = RunOnce.make("once", { timeToLive: "1 hour", result: Schema.Number })
  let runs = 0
  const run = RunOnce.run(
    Effect.delay(
      Effect.sync(() => ++runs),
      "4 seconds"
    ),
    once
  )
  stores[0]!.isDown = true
  const callers = yield* Effect.forEach([0, 1, 0, 1], (caller) => background(as(services[caller]!)(run)))
  for (const caller of callers) assert.strictEqual(yield* joined(caller), 1)
  // the one that comes back knows nothing of it
  stores[0]!.isDown = false
  for (const other of [stores[1]!, stores[2]!]) {
    other.isDown = true
    assert.strictEqual(yield* joined(yield* background(as(services[0]!)(run))), 1)
    const result = yield* joined(yield* background(as(services[1]!)(RunOnce.result(once))))
    assert.deepStrictEqual(result, Option.some(1))
    other.isDown = false
  }
  assert.strictEqual(runs, 1)
})

test("While one of three servers is down, each tick runs once by a quorum, although the servers' clocks differ", function* () {
  // less than a tick: when the clock that is ahead comes back, none is skipped
  const stores = yield* Effect.forEach([0, 300, -300], testStore)
  const ticks: Array<number> = []
  const job = DistributedCron.layer({
    name: "schedule",
    cron: Cron.parse("* * * * * *"),
    execute: Effect.map(DistributedCron.CurrentScheduledTime, (time) => ticks.push(DateTime.toEpochMillis(time) / 1000))
  })
  for (let number = 0; number < 3; number++) {
    const service = yield* quorumOf(stores, options)
    yield* background(as(service)(Effect.scoped(Effect.andThen(Layer.build(Layer.fresh(job)), Effect.never))))
  }
  for (let turn = 0; turn < 6; turn++) {
    stores[turn % 3]!.isDown = true
    yield* TestClock.adjust("3 seconds")
    stores[turn % 3]!.isDown = false
    yield* TestClock.adjust("2 seconds")
  }
  assert.isAtLeast(ticks.length, 28)
  assert.deepStrictEqual(
    ticks,
    ticks.map((_, i) => ticks[0]! + i)
  )
})

test("A quorum elects one leader, believes what it proclaims, and elects the next one when it resigns", function* () {
  const stores = yield* testStores(3)
  const [one, other] = [yield* quorumOf(stores, options), yield* quorumOf(stores, options)]
  const election = LeaderElection.make("election", { value: Schema.String })
  const first = yield* as(one)(LeaderElection.campaign(election, { proclaim: "a" }))
  const second = yield* background(as(other)(LeaderElection.campaign(election, { proclaim: "c" })))
  const value = Effect.map(
    as(other)(LeaderElection.leader(election)),
    Option.flatMap(({ value }) => value)
  )
  assert.deepStrictEqual(yield* value, Option.some("a"))
  stores[0]!.isDown = true
  yield* first.proclaim("b")
  stores[0]!.isDown = false
  stores[1]!.isDown = true
  // one of the two that are left has the older value
  assert.deepStrictEqual(yield* value, Option.some("b"))
  stores[1]!.isDown = false
  stores[2]!.isDown = true
  yield* first.resign
  const { term } = yield* joined(second)
  assert.isAbove(Number(term), Number(first.term))
  // this one still has the second version of the first leader's
  stores[2]!.isDown = false
  assert.deepStrictEqual(yield* value, Option.some("c"))
})
