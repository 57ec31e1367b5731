/**
 * The releases of which a member of a quorum is still to be told, under virtual time.
 */
import { assert } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { LockStoreError, type StoreReason } from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { release } from "../../packages/core/dist/internal/store/operations/lock.js"
import { LockKeys } from "../../packages/core/dist/internal/store/keys.js"
import type { Member } from "../../packages/core/dist/internal/store/quorum/QuorumCall.js"
import { tellingLater } from "../../packages/core/dist/internal/store/quorum/stragglers.js"
import { background } from "../kit/background.ts"
import { test } from "../kit/test.ts"

const failing = (reason: StoreReason) =>
  Effect.fail(new LockStoreError({ operation: "lock/release", lock: "a", reason }))

/** A member of which `answer` says what it answers to the release of an owner, and what it was asked for. */
const makeUntold = (answer: (owner: string) => Effect.Effect<number, LockStoreError>) =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    const asked: Array<string> = []
    const run = ({ args }: { readonly args: ReadonlyArray<string | number> }) =>
      Effect.suspend(() => {
        asked.push(String(args[0]))
        return answer(String(args[0]))
      })
    const member = { label: "member 1", client: { run, store: {} }, keyOf: undefined } as unknown as Member
    const begun: Array<Effect.Effect<void>> = []
    const tellLater = tellingLater(
      member,
      () => clock.currentTimeMillisUnsafe(),
      (effect) => void begun.push(effect)
    )
    const add = (owner: string, until: number, from = 0, mayBeNothing = false) =>
      tellLater({ command: release(new LockKeys("a"), owner, "PUBLISH"), from, until, mayBeNothing })
    return { add, asked, begun }
  })

test("Of too many releases of which a member was not told, those are kept that would free themselves last", function* () {
  let isDown = true
  const { add, asked, begun } = yield* makeUntold(() => (isDown ? failing("NotConnected") : Effect.succeed(1)))
  // each is numbered by when it frees itself; those that are added after the last look at them are the last
  for (let i = 0; i < 19_000; i++) {
    const number = (i * 7919) % 19_000
    add(`${number}`, 30_000 + number)
  }
  for (let number = 19_000; number < 20_000; number++) add(`${number}`, 30_000 + number)
  assert.lengthOf(begun, 1)
  yield* background(begun[0]!)
  yield* TestClock.adjust("10 seconds")
  isDown = false
  yield* TestClock.adjust("2 seconds")
  const told = new Set(asked)
  assert.isAtLeast(told.size, 4000)
  assert.isAtMost(told.size, 5000)
  for (const number of told) assert.isAtLeast(Number(number), 20_000 - told.size)
})

test("Of too many releases of which a member was not told, those are kept of which it had the lock for certain", function* () {
  let isDown = true
  const { add, asked, begun } = yield* makeUntold(() => (isDown ? failing("TimedOut") : Effect.succeed(1)))
  for (let i = 0; i < 10; i++) add(`held ${i}`, 30_000)
  for (let i = 0; i < 20_000; i++) add(`denied ${i}`, 40_000, 0, true)
  yield* background(begun[0]!)
  yield* TestClock.adjust("10 seconds")
  isDown = false
  yield* TestClock.adjust("2 seconds")
  for (let i = 0; i < 10; i++) assert.include(asked, `held ${i}`)
})

test("A member is told of the releases that it can run although it cannot run the one that comes first", function* () {
  const { add, asked, begun } = yield* makeUntold((owner) =>
    owner === "stuck" ? failing("ClusterDown") : owner === "dying" ? Effect.die("gone") : Effect.succeed(1)
  )
  add("stuck", 30_000)
  add("dying", 30_000)
  add("late", 30_000, 5000)
  for (let i = 0; i < 10; i++) add(`${i}`, 30_000)
  yield* background(begun[0]!)
  yield* TestClock.adjust("2 seconds")
  for (let i = 0; i < 10; i++) assert.include(asked, `${i}`)
  assert.notInclude(asked, "late")
  yield* TestClock.adjust("6 seconds")
  assert.include(asked, "late")
  yield* TestClock.adjust("1 minute")
  assert.isAtLeast(asked.filter((owner) => owner === "stuck").length, 10)
  assert.isAtMost(asked.length, 100)
  // all are over, and the next one begins anew
  assert.lengthOf(begun, 1)
  add("next", 200_000)
  yield* background(begun[1]!)
  assert.strictEqual(asked.at(-1), "next")
})

test("A release that a member refuses for good is sent to it once", function* () {
  const { add, asked, begun } = yield* makeUntold(() => failing("NoPermission"))
  for (let i = 0; i < 10; i++) add(`${i}`, 30_000)
  yield* background(begun[0]!)
  yield* TestClock.adjust("10 seconds")
  assert.lengthOf(asked, 10)
})

test("At most a hundred releases at once are on their way to a member that has come back", function* () {
  let underWay = 0
  let most = 0
  const { add, asked, begun } = yield* makeUntold(() =>
    Effect.suspend(() => {
      most = Math.max(most, ++underWay)
      return Effect.as(Effect.sleep("1 millis").pipe(Effect.andThen(Effect.sync(() => underWay--))), 1)
    })
  )
  for (let i = 0; i < 1000; i++) add(`${i}`, 30_000)
  yield* background(begun[0]!)
  for (let passed = 0; passed < 20; passed++) yield* TestClock.adjust("1 millis")
  assert.lengthOf(asked, 1000)
  assert.strictEqual(most, 100)
})
