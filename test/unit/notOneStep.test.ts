/**
 * A section takes no step after the deadline of what it holds, even if nothing has told its process of the loss: here the monotonic
 * clock jumps, as it does for a process that was stopped, while no timer rings.
 */
import { assert } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Scheduler } from "effect"
import { Lock, MultiLock } from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { loss } from "../kit/exits.ts"
import { jumpingClock } from "../kit/jumpingClock.ts"
import { type Section, sectionsOf } from "../kit/sectionsOf.ts"
import { as, clientOf, quorumOf, type Service, testStore, testStores } from "../kit/testStore.ts"
import { wrappedStore } from "../kit/wrappedStore.ts"
import { test } from "../kit/test.ts"
import { background } from "../kit/background.ts"

const leaseMillis = 30_000

const world = Effect.gen(function* () {
  const clock = yield* jumpingClock
  const service = yield* clock.on(Effect.flatMap(testStore(), (store) => clientOf(store)))
  return { ...clock, service, run: as(service) }
})

/** A step that the test lets happen, and what has happened. */
const gate = () => {
  const open = Deferred.makeUnsafe<void>()
  const steps: Array<string> = []
  const step = (name: string) => Effect.sync(() => void steps.push(name))
  return { open: Deferred.succeed(open, undefined), opened: Deferred.await(open), step, steps }
}

/** What waits at a gate resumes so many milliseconds later than it could have. */
const lateBy = (millis: number, jump: Effect.Success<typeof jumpingClock>["jump"], open: Effect.Effect<unknown>) =>
  TestClock.adjust(0).pipe(Effect.andThen(jump(millis)), Effect.andThen(open))

const kinds: Record<string, Section> = {
  ...sectionsOf,
  "Lock.withLockIfAvailable": (body) => Lock.withLockIfAvailable(body, "a"),
  "Lock with a fixed lease": (body) => Lock.withLock(body, "a", { leaseTime: leaseMillis }),
  "MultiLock of which one lease ends before the others": (body) =>
    Lock.withLock(
      body,
      MultiLock.make([1, 2, 3].map((n) => Lock.make(`${n}`, { leaseTime: (n === 2 ? 1 : 2) * leaseMillis })))
    )
}

const takesNoStep = (service: Service, { jump, on }: Effect.Success<typeof jumpingClock>, section: Section) =>
  Effect.gen(function* () {
    const { open, opened, step, steps } = gate()
    const body = step("in").pipe(Effect.andThen(opened), Effect.andThen(step("late")))
    const fiber = yield* background(on(as(service)(section(body))))
    yield* TestClock.adjust(0)
    assert.deepStrictEqual(steps, ["in"])
    yield* jump(leaseMillis)
    yield* open
    const exit = yield* Fiber.await(fiber)
    assert.strictEqual(loss(exit).reason, "Expired")
    assert.deepStrictEqual(steps, ["in"])
  })

for (const [kind, section] of Object.entries(kinds)) {
  test(`A section of ${kind} that resumes after its deadline takes no step, and fails with LockLost`, function* () {
    const clock = yield* world
    yield* takesNoStep(clock.service, clock, section)
  })
}

test("A section on a quorum that resumes after its deadline takes no step", function* () {
  const clock = yield* jumpingClock
  const service = yield* clock.on(Effect.flatMap(testStores(3), (stores) => quorumOf(stores)))
  yield* takesNoStep(service, clock, sectionsOf.Lock)
})

test("Fibers that a section has forked take no step after its deadline", function* () {
  const { jump, run } = yield* world
  const { open, opened, step, steps } = gate()
  const late = (name: string) => Effect.andThen(opened, step(name))
  const body = Effect.gen(function* () {
    yield* Effect.forkChild(late("a child"))
    yield* Effect.forkScoped(late("a child of the scope"))
    yield* Effect.all([late("a branch"), late("another branch")], { concurrency: "unbounded" })
  })
  const fiber = yield* background(run(Lock.withLock(Effect.scoped(body), "a")))
  yield* lateBy(leaseMillis, jump, open)
  assert.strictEqual(loss(yield* Fiber.await(fiber)).reason, "Expired")
  assert.deepStrictEqual(steps, [])
})

for (const [which, outer, inner] of [
  ["outer", 10_000, leaseMillis],
  ["inner", leaseMillis, 10_000]
] as const) {
  test(`A section inside another takes no step after the deadline of the ${which} one, which ends first`, function* () {
    const { jump, run } = yield* world
    const { open, opened, step, steps } = gate()
    const section = Effect.andThen(opened, step("inner")).pipe(
      Lock.withLock("b", { leaseTime: inner }),
      Effect.exit,
      Effect.tap(step("between")),
      Effect.flatten,
      Lock.withLock("a", { leaseTime: outer })
    )
    const fiber = yield* background(run(section))
    yield* lateBy(10_000, jump, open)
    assert.strictEqual(loss(yield* Fiber.await(fiber)).lock, which === "outer" ? "a" : "b")
    // the outer section goes on under its own lock
    assert.deepStrictEqual(steps, which === "outer" ? [] : ["between"])
  })
}

test("After its deadline a section's finalizers run, and its lock is released", function* () {
  const { jump, run } = yield* world
  const { open, opened, step, steps } = gate()
  const body = opened.pipe(
    Effect.andThen(step("late")),
    Effect.ensuring(Effect.andThen(Effect.sleep("1 second"), step("cleaned up")))
  )
  const fiber = yield* background(run(Lock.withLock(body, "a", { leaseTime: leaseMillis })))
  yield* lateBy(leaseMillis, jump, open)
  yield* TestClock.adjust("1 second")
  assert.strictEqual(loss(yield* Fiber.await(fiber)).reason, "Expired")
  assert.deepStrictEqual(steps, ["cleaned up"])
  assert.isFalse(yield* run(Lock.isLocked("a")))
})

test("A region that cannot be interrupted goes on to its end once the loss is known, and no further", function* () {
  const { jump, run } = yield* world
  const { open, opened, step, steps } = gate()
  const isHeld = Effect.flatMap(Lock.currentHolding("a"), ({ isHeld }) => isHeld).pipe(
    Effect.orElseSucceed(() => false)
  )
  const body = Effect.uninterruptible(opened).pipe(
    Effect.andThen(Effect.flatMap(isHeld, (held) => step(`held: ${held}`))),
    Effect.uninterruptible,
    Effect.andThen(step("late"))
  )
  const fiber = yield* background(run(Lock.withLock(body, "a")))
  yield* lateBy(leaseMillis, jump, open)
  assert.strictEqual(loss(yield* Fiber.await(fiber)).reason, "Expired")
  assert.deepStrictEqual(steps, ["held: false"])
})

test("A fiber that outlives its section goes on, after the section's end and after its loss", function* () {
  const { jump, run } = yield* world
  const { open, opened, step, steps } = gate()
  const detached = (name: string) => Effect.asVoid(Effect.forkDetach(Effect.andThen(opened, step(name))))
  yield* run(Lock.withLock(detached("ended"), "a"))
  const lost = yield* background(run(Lock.withLock(Effect.andThen(detached("lost"), opened), "b")))
  yield* lateBy(leaseMillis, jump, open)
  assert.strictEqual(loss(yield* Fiber.await(lost)).lock, "b")
  yield* TestClock.adjust(0)
  assert.deepStrictEqual(steps.toSorted(), ["ended", "lost"])
})

test("What a section has released early may go on after the deadline", function* () {
  const { jump, run } = yield* world
  const { open, opened, step, steps } = gate()
  const body = Effect.flatMap(Lock.currentHolding("a"), ({ release }) => release).pipe(
    Effect.andThen(opened),
    Effect.andThen(step("on"))
  )
  const fiber = yield* background(run(Lock.withLock(body, "a")))
  yield* lateBy(leaseMillis, jump, open)
  assert.isTrue(Exit.isSuccess(yield* Fiber.await(fiber)))
  assert.deepStrictEqual(steps, ["on"])
})

for (const [what, answers] of [
  ["goes on if the reply that extends its lease had arrived unread", true],
  ["takes no step if there is no reply", false]
] as const) {
  test(`A section that was handed its lock, and resumes after that short lease, ${what}`, function* () {
    const clock = yield* jumpingClock
    const server = yield* testStore()
    const read = Deferred.makeUnsafe<void>()
    const store = wrappedStore(server.store, ({ operation, run }) =>
      operation === "lock/renew" ? Effect.tap(run(), () => Deferred.await(read)) : run()
    )
    const holder = yield* clock.on(clientOf(server))
    const waiter = yield* clock.on(clientOf({ store }))
    const { open, opened, step, steps } = gate()
    const first = yield* background(as(holder)(Lock.withLock(Effect.sleep("1 second"), "a")))
    yield* TestClock.adjust(1)
    const body = step("in").pipe(Effect.andThen(opened), Effect.andThen(step("on")))
    const second = yield* background(as(waiter)(Lock.withLock(body, "a")))
    yield* TestClock.adjust("1 second")
    yield* Fiber.join(first)
    assert.deepStrictEqual([steps, server.operations.includes("lock/renew")], [["in"], true])
    yield* clock.jump(3000)
    yield* Effect.andThen(open, answers ? Deferred.succeed(read, undefined) : Effect.void)
    const exit = yield* Fiber.await(second)
    assert.deepStrictEqual(steps, answers ? ["in", "on"] : ["in"])
    assert.strictEqual(Exit.isSuccess(exit), answers)
    yield* Deferred.succeed(read, undefined)
  })
}

test("A section takes no step after its deadline where its caller never yields, and yields no more often", function* () {
  const { jump, run } = yield* world
  const { open, opened, step, steps } = gate()
  let asked = 0
  class Own extends Scheduler.MixedScheduler {
    override shouldYield(fiber: Fiber.Fiber<unknown, unknown>) {
      asked++
      return super.shouldYield(fiber)
    }
  }
  const fiber = yield* run(Lock.withLock(Effect.andThen(opened, step("late")), "a")).pipe(
    Effect.provideService(Scheduler.Scheduler, new Own()),
    Effect.provideService(Scheduler.PreventSchedulerYield, true),
    background
  )
  const before = asked
  yield* lateBy(leaseMillis, jump, open)
  assert.strictEqual(loss(yield* Fiber.await(fiber)).reason, "Expired")
  assert.deepStrictEqual(steps, [])
  assert.strictEqual(asked, before)
})

test("A section runs by the scheduler of its caller", function* () {
  const { jump, run } = yield* world
  const { open, opened, step, steps } = gate()
  let asked = 0
  let scheduled = 0
  class Own extends Scheduler.MixedScheduler {
    override shouldYield(fiber: Fiber.Fiber<unknown, unknown>) {
      asked++
      return super.shouldYield(fiber)
    }
    override makeDispatcher() {
      const dispatcher = super.makeDispatcher()
      const { scheduleTask } = dispatcher
      dispatcher.scheduleTask = (task, priority) => {
        scheduled++
        scheduleTask.call(dispatcher, task, priority)
      }
      return dispatcher
    }
  }
  const body = Effect.gen(function* () {
    const before = { asked, scheduled }
    yield* Effect.yieldNow
    assert.isAbove(asked, before.asked)
    assert.strictEqual(scheduled, before.scheduled + 1)
    yield* opened
    yield* step("late")
  })
  const fiber = yield* run(Lock.withLock(body, "a")).pipe(
    Effect.provideService(Scheduler.Scheduler, new Own()),
    background
  )
  yield* lateBy(leaseMillis, jump, open)
  assert.strictEqual(loss(yield* Fiber.await(fiber)).reason, "Expired")
  assert.deepStrictEqual(steps, [])
})
