/**
 * What schedules must do on every store: on memory under virtual time, and on Redis in real time.
 */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Cron, DateTime, Deferred, Duration, Effect, Exit, Fiber, Layer, Result, Scope } from "effect"
import { DistributedCron, InvalidLockName, InvalidLockOptions, Lock, LockStore, RedisLock } from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { env } from "node:process"
import { background } from "../kit/background.ts"
import { freshName } from "../kit/names.ts"
import { runOperation } from "../kit/storeOperations.ts"
import { times } from "../kit/times.ts"
import { changedStore, type Store, wrappedStore, wrappedStoreLayer } from "../kit/wrappedStore.ts"
import { expectWarning } from "../run/logs.ts"
import { backends, coordinated } from "./coordinated.ts"
import { closingSubscriptions } from "../kit/subscriptions.ts"
import { testsOf } from "../kit/test.ts"

const everySecond = Cron.parse("* * * * * *")

/** The time of the memory store's server when that of the test's clock is zero. */
const virtualEpochSeconds = 1_000_000_001

/** How many ticks are played in virtual time. */
const ticksPlayed = 500 * times

/** The seconds of the running tick, since the epoch. */
const scheduled = Effect.map(DistributedCron.CurrentScheduledTime, (time) => DateTime.toEpochMillis(time) / 1000)

type Job = Layer.Layer<never, unknown, RedisLock.RedisLock>

/** Builds a layer as another process would, whose clock is wrong by so much, until told to close. */
const process = Effect.fnUntraced(function* (job: Job, skewMillis = 0, options?: RedisLock.RedisLockOptions) {
  const told = yield* Deferred.make<void>()
  const clock = yield* Clock.Clock
  const skewed: Clock.Clock = Object.create(clock, {
    currentTimeMillisUnsafe: { value: () => clock.currentTimeMillisUnsafe() + skewMillis },
    currentTimeMillis: { value: Effect.map(clock.currentTimeMillis, (millis) => millis + skewMillis) }
  })
  const client = closingSubscriptions(100)(RedisLock.layerFromStore(options))
  const fiber = yield* background(
    Effect.andThen(Layer.build(Layer.fresh(Layer.provide(job, client))), Deferred.await(told)).pipe(
      Effect.scoped,
      Effect.provideService(Clock.Clock, skewed)
    )
  )
  return { close: Effect.andThen(Deferred.succeed(told, undefined), Fiber.join(fiber)) }
})

/** The same numbers from 0 to 1 in each run (a linear congruential generator). */
const makeRandom = (seed: number) => () => (seed = (seed * 1_664_525 + 1_013_904_223) % 2 ** 32) / 2 ** 32

/** Consecutive whole numbers. */
const assertConsecutive = (ticks: ReadonlyArray<number>) =>
  assert.deepStrictEqual(
    ticks,
    ticks.map((_, i) => ticks[0]! + i)
  )

for (const backend of backends) {
  const { suite, until } = coordinated(backend)

  describe(`a schedule on ${backend.name}`, () => {
    suite("a schedule", (test) => {
      test("Each tick runs once in all processes together, with the time for which it was scheduled", function* () {
        const ticks: Array<number> = []
        const job = DistributedCron.layer({
          name: freshName("cron"),
          cron: everySecond,
          execute: Effect.map(scheduled, (tick) => ticks.push(tick))
        })
        const processes = []
        for (const skew of [0, 2500, -3000]) processes.push(yield* process(job, skew))
        yield* until(() => ticks.length >= 4)
        for (const { close } of processes) yield* close
        assertConsecutive(ticks)
      })

      test("A tick that fails is logged, and the next one runs", function* () {
        expectWarning(/A tick of a schedule has failed/)
        let runs = 0
        const job = DistributedCron.layer({
          name: freshName("cron"),
          cron: everySecond,
          execute: Effect.suspend(() => (++runs === 1 ? Effect.fail("no") : Effect.void))
        })
        const { close } = yield* process(job)
        yield* until(() => runs === 2)
        yield* close
      })

      test("A tick that interrupts itself is logged, and the next one runs", function* () {
        for (const overlap of ["skip", "allow"] as const) {
          expectWarning(/A tick of a schedule has failed/)
          let runs = 0
          const job = DistributedCron.layer({
            name: freshName("cron"),
            cron: everySecond,
            overlap,
            execute: Effect.suspend(() => (++runs === 1 ? Effect.interrupt : Effect.void))
          })
          const { close } = yield* process(job)
          yield* until(() => runs === 2)
          yield* close
        }
      })

      test("A tick whose lock is lost is interrupted, and does not run again", function* () {
        const name = freshName("cron")
        const begun: Array<number> = []
        let interruptions = 0
        const job = DistributedCron.layer({
          name,
          cron: everySecond,
          execute: Effect.flatMap(scheduled, (tick) => {
            begun.push(tick)
            return begun.length === 1
              ? Effect.onInterrupt(Effect.never, () => Effect.sync(() => void interruptions++))
              : Effect.void
          })
        })
        // the first one learns of its loss by its next renewal
        const processes = [
          yield* process(job, 0, { watchdogLeaseTime: "6 seconds" }),
          yield* process(job, 0, { watchdogLeaseTime: "6 seconds" })
        ]
        yield* until(() => begun.length === 1)
        expectWarning(/A schedule was interrupted by a failure, and tries again/)
        yield* Lock.forceRelease(name)
        yield* until(() => begun.length >= 3 && interruptions === 1)
        for (const { close } of processes) yield* close
        assert.deepStrictEqual(begun, [...new Set(begun)])
      })

      test("Invalid names, options and schedules fail where the layer is built", function* () {
        const failure = (options: Partial<DistributedCron.DistributedCronOptions<never, never>>) =>
          Effect.gen(function* () {
            const scope = yield* Scope.make()
            const job = DistributedCron.layer({ name: "a", cron: everySecond, execute: Effect.void, ...options })
            const error = yield* Effect.flip(Layer.buildWithScope(job, scope))
            yield* Scope.close(scope, Exit.void)
            return error
          })
        assert.instanceOf(yield* failure({ name: "" }), InvalidLockName)
        assert.propertyVal(yield* failure({ cron: Cron.parse("nonsense") }), "_tag", "CronParseError")
        for (const [option, options] of Object.entries({
          overlap: { overlap: "sometimes" as "skip" },
          catchUp: { catchUp: "some" as "none" },
          cron: { cron: Cron.parse("0 0 30 2 *") }
        } as const)) {
          const error = yield* failure(options)
          assert.instanceOf(error, InvalidLockOptions)
          assert.strictEqual(error.option, option)
        }
      })
    })
  })
}

it.layer(LockStore.layerMemory)("a schedule in virtual time", (it) => {
  const test = testsOf(it.effect)

  const halfASecondBeforeATick = Effect.flatMap(Clock.currentTimeMillis, (now) => TestClock.adjust(1500 - (now % 1000)))

  /** Runs a job of one process for so many seconds; tells when each tick began, and which it was. */
  const runs = Effect.fnUntraced(function* (
    seconds: number,
    takes: number,
    options: Partial<DistributedCron.DistributedCronOptions<never, never>>
  ) {
    const begun: Array<string> = []
    yield* halfASecondBeforeATick
    const first = Math.ceil((yield* Clock.currentTimeMillis) / 1000) + 1
    let zero = 0
    const job = DistributedCron.layer({
      name: freshName("cron"),
      cron: everySecond,
      ...options,
      execute: Effect.gen(function* () {
        const tick = yield* scheduled
        if (begun.length === 0) zero = tick
        const now = Math.floor((yield* Clock.currentTimeMillis) / 100) / 10
        begun.push(`${tick - zero} at ${Math.round((now - first + 1) * 10) / 10}`)
        yield* Effect.sleep(takes * 1000)
      })
    })
    const processes = [yield* process(job), yield* process(job)]
    yield* TestClock.adjust(seconds * 1000)
    for (const { close } of processes) yield* close
    const start = Number(begun[0]!.split(" at ")[1])
    return begun.map((text) => {
      const [tick, at] = text.split(" at ")
      return `${tick} at ${Math.round((Number(at) - start) * 10) / 10}`
    })
  })

  test("Ticks that come while one is running are skipped, wait for it, or run beside it", function* () {
    assert.deepStrictEqual(yield* runs(7.5, 2.5, { overlap: "skip" }), ["0 at 0", "3 at 3", "6 at 6"])
    assert.deepStrictEqual(yield* runs(6.2, 1.5, { overlap: "wait" }), ["0 at 0", "1 at 1.5", "2 at 3", "3 at 4.5"])
    assert.deepStrictEqual(yield* runs(3.2, 2.5, { overlap: "allow" }), ["0 at 0", "1 at 1", "2 at 2"])
  })

  /** One process runs a schedule of every second for a while, then none does for ten ticks. Returns how many have run. */
  const missTenTicks = Effect.fnUntraced(function* (job: Job, ticks: ReadonlyArray<number>) {
    const before = yield* process(job)
    yield* TestClock.adjust("2500 millis")
    yield* before.close
    const ran = ticks.length
    yield* TestClock.adjust("10 seconds")
    return ran
  })

  test("Ticks that came while no process was there are left out, or the last or all of them run", function* () {
    for (const [catchUp, caughtUp, overlap] of [
      ["none", 0, "skip"],
      ["latest", 1, "skip"],
      ["latest", 1, "wait"],
      ["all", 10, "skip"]
    ] as const) {
      const ticks: Array<number> = []
      const job = DistributedCron.layer({
        name: freshName("cron"),
        cron: everySecond,
        catchUp,
        overlap,
        execute: Effect.map(scheduled, (tick) => ticks.push(tick))
      })
      const ran = yield* missTenTicks(job, ticks)
      const after = yield* process(job)
      const others = yield* process(job)
      yield* TestClock.adjust(0)
      const late = ticks.slice(ran)
      assert.strictEqual(late.length, caughtUp, catchUp)
      const last = ticks[ran - 1]! + 10
      assert.deepStrictEqual(
        late,
        late.map((_, i) => last - late.length + 1 + i),
        catchUp
      )
      yield* TestClock.adjust("2 seconds")
      assert.deepStrictEqual(ticks.slice(ran + caughtUp), [last + 1, last + 2])
      yield* after.close
      yield* others.close
    }
  })

  test("Only the latest of the ticks that were missed before runs where ticks wait, also if its first attempt fails", function* () {
    expectWarning(/A schedule was interrupted by a failure, and tries again/)
    const ticks: Array<number> = []
    const job = DistributedCron.layer({
      name: freshName("cron"),
      cron: everySecond,
      overlap: "wait",
      catchUp: "latest",
      execute: Effect.map(scheduled, (tick) => ticks.push(tick))
    })
    const ran = yield* missTenTicks(job, ticks)
    let hasFailed = false
    const failing = wrappedStoreLayer(({ fail, operation, run }) => {
      if (hasFailed || operation !== "lock/acquire") return run()
      hasFailed = true
      return fail("OutOfMemory")
    })
    const after = yield* process(job).pipe(Effect.provide(failing))
    yield* TestClock.adjust("5 seconds")
    yield* after.close
    assert.isTrue(hasFailed)
    const late = ticks.slice(ran)
    assertConsecutive(late)
    assert.strictEqual(late[0], ticks[ran - 1]! + 10)
  })

  test("The maxHold of a client bounds each tick, and not all that are worked off one after the other", function* () {
    expectWarning(/A schedule was interrupted by a failure, and tries again/)
    const begun: Array<number> = []
    const completed: Array<number> = []
    const job = DistributedCron.layer({
      name: freshName("cron"),
      cron: everySecond,
      catchUp: "all",
      execute: Effect.gen(function* () {
        const tick = yield* scheduled
        begun.push(tick)
        // the fifth one hangs
        yield* begun.length === 5 ? Effect.never : Effect.sleep(begun.length === 1 ? 0 : "2 seconds")
        completed.push(tick)
      })
    })
    const before = yield* process(job)
    while (begun.length === 0) yield* TestClock.adjust("100 millis")
    yield* before.close
    yield* TestClock.adjust("10 seconds")
    const after = yield* process(job, 0, { maxHold: "5 seconds" })
    yield* TestClock.adjust("40 seconds")
    yield* after.close
    assert.isAbove(begun.length, 10)
    assertConsecutive(begun.slice(0, 10))
    assert.deepStrictEqual(completed.slice(0, 9), [...begun.slice(0, 4), ...begun.slice(5, 10)])
  })

  /** Has the store forget the last tick of a schedule, and its lock. */
  const loseData = Effect.fnUntraced(function* (name: string) {
    const store = yield* LockStore.LockStore
    const keys = [name, `effect_redis_lock_record:{${name}}:tick`]
    const [, , record] = (yield* runOperation(store, "record/read", keys)) as ReadonlyArray<string | null>
    yield* runOperation(store, "record/clear", keys, [record!.split(" ")[0]!, "PUBLISH"])
    yield* runOperation(store, "lock/force_release", [name, `silent:${name}`], ["PUBLISH"])
  })

  test("No tick runs again after Redis has lost its data, whatever becomes of ticks that overlap or were missed", function* () {
    for (const overlap of ["skip", "wait", "allow"] as const) {
      for (const catchUp of ["none", "all"] as const) {
        const ticks: Array<number> = []
        const name = freshName("cron")
        const job = DistributedCron.layer({
          name,
          cron: everySecond,
          overlap,
          catchUp,
          execute: Effect.map(scheduled, (tick) => ticks.push(tick))
        })
        yield* halfASecondBeforeATick
        const processes = [yield* process(job), yield* process(job)]
        yield* TestClock.adjust("5 seconds")
        yield* loseData(name)
        yield* TestClock.adjust("2 seconds")
        for (const { close } of processes) yield* close
        assert.lengthOf(ticks, 7, `${overlap} ${catchUp}`)
        assertConsecutive(ticks)
      }
    }
  })

  test("A tick that is running when Redis loses its data does not run again, whatever becomes of those that overlap", function* () {
    for (const overlap of ["skip", "wait", "allow"] as const) {
      const ticks: Array<number> = []
      const name = freshName("cron")
      const job = DistributedCron.layer({
        name,
        cron: Cron.parse("*/20 * * * * *"),
        overlap,
        execute: Effect.andThen(
          Effect.map(scheduled, (tick) => ticks.push(tick)),
          Effect.sleep("10 seconds")
        )
      })
      // each finds a tick due before the other has noted that it runs it
      const slow = wrappedStoreLayer(({ operation, run }) =>
        operation === "record/write" ? Effect.delay(Effect.suspend(run), "50 millis") : run()
      )
      const processes = []
      for (let i = 0; i < 2; i++) processes.push(yield* process(job).pipe(Effect.provide(slow)))
      while (ticks.length < 2) yield* TestClock.adjust("1 second")
      yield* TestClock.adjust("5 seconds")
      if (overlap !== "allow") expectWarning(/A schedule was interrupted by a failure, and tries again/)
      yield* loseData(name)
      yield* TestClock.adjust("40 seconds")
      for (const { close } of processes) yield* close
      assert.isAtLeast(ticks.length, 3, overlap)
      assert.deepStrictEqual(ticks, [...new Set(ticks)], overlap)
    }
  })

  for (const [how, failure] of [
    ["finds the lock lost", "lost"],
    ["fails for longer than it is repeated", "refused"]
  ] as const) {
    test(`A tick that was claimed to run beside others runs once, although the release of its claim ${how}`, function* () {
      expectWarning(/A schedule was interrupted by a failure, and tries again/)
      const claimed: Array<number> = []
      const ticks: Array<number> = []
      let isFailing = true
      const job = DistributedCron.layer({
        name: freshName("cron"),
        cron: everySecond,
        overlap: "allow",
        execute: Effect.map(scheduled, (tick) => ticks.push(tick))
      })
      const { close } = yield* process(job, 0, { releaseTimeout: "100 millis" }).pipe(
        Effect.provide(
          wrappedStoreLayer(({ args, fail, operation, run }) => {
            if (operation === "record/write") claimed.push(Number.parseInt(String(args[3]), 10) / 1000)
            if (operation !== "lock/release" || !isFailing) return run()
            // the second time the lock is not there
            return failure === "lost" ? Effect.andThen(run(), Effect.suspend(run)) : fail()
          })
        )
      )
      while (claimed.length === 0) yield* TestClock.adjust("100 millis")
      yield* TestClock.adjust("500 millis")
      isFailing = false
      yield* TestClock.adjust("5 seconds")
      yield* close
      assert.isAtLeast(claimed.length, 3)
      assert.deepStrictEqual(ticks, claimed)
    })
  }

  /** A schedule whose lock somebody takes for another reason as it begins. */
  const besideAnother = Effect.fnUntraced(function* (
    name: string,
    holds: Duration.Input = "12 seconds",
    options?: RedisLock.RedisLockOptions
  ) {
    const ticks: Array<number> = []
    const job = DistributedCron.layer({
      name,
      cron: Cron.parse("*/10 * * * * *"),
      execute: Effect.map(scheduled, (tick) => ticks.push(tick))
    })
    const { close } = yield* process(job, 0, options)
    const held = yield* background(
      Lock.withLock(Effect.sleep(holds), name).pipe(Effect.provide(RedisLock.layerFromStore()))
    )
    const began = (yield* Clock.currentTimeMillis) / 1000
    return { began, close, held, ticks }
  })

  test("A tick that comes while somebody else has the lock for another reason runs when it is free", function* () {
    const name = freshName("cron")
    const { began, close, held, ticks } = yield* besideAnother(name)
    yield* TestClock.adjust("11 seconds")
    assert.deepStrictEqual(ticks, [])
    yield* TestClock.adjust("2500 millis")
    // the tick that had come by then, late
    assert.isAtLeast(ticks.length, 1)
    assert.isAtMost(ticks[0]! - virtualEpochSeconds, began + 12)
    yield* Fiber.join(held)
    yield* close
  })

  test("A tick that comes while somebody else has the lock for long runs when it is free, however long the fallbackInterval is", function* () {
    const { close, held, ticks } = yield* besideAnother(freshName("cron"), "1 hour", { fallbackInterval: "1 day" })
    yield* TestClock.adjust("1 hour")
    assert.deepStrictEqual(ticks, [])
    yield* TestClock.adjust("2 seconds")
    assert.isAtLeast(ticks.length, 1)
    yield* Fiber.join(held)
    yield* close
  })

  test("A tick runs when the lock is free although the process that began the last one has died over it", function* () {
    const name = freshName("cron")
    const store = yield* LockStore.LockStore
    const [dead, record] = ["dead:1", `effect_redis_lock_record:{${name}}:tick`]
    yield* runOperation(store, "lock/acquire", [name, name], [dead, 10_000, 60_000])
    yield* runOperation(store, "record/write", [name, record], [dead, 0, 2, "1 running", 0, "PUBLISH"])
    yield* runOperation(store, "lock/release", [name, name], [dead, "", 0, 0])
    const { began, close, held, ticks } = yield* besideAnother(name)
    yield* TestClock.adjust("13500 millis")
    assert.isAtLeast(ticks.length, 1)
    assert.isAtMost(ticks[0]! - virtualEpochSeconds, began + 12)
    yield* Fiber.join(held)
    yield* close
  })

  test(`Of ${ticksPlayed} ticks in four processes, whose clocks are up to 3 seconds apart, none runs twice and none is missed`, function* () {
    const ticks: Array<number> = []
    const name = freshName("cron")
    const job = DistributedCron.layer({
      name,
      cron: everySecond,
      execute: Effect.map(scheduled, (tick) => ticks.push(tick))
    })
    // every command takes a while, so that the processes come between each other's
    const random = makeRandom(7)
    const slow = (store: Store) =>
      wrappedStore(store, ({ run }) =>
        Effect.suspend(() => Effect.delay(Effect.suspend(run), 1 + Math.floor(random() * 20)))
      )
    const slowly = (skewMillis: number) => process(job, skewMillis).pipe(Effect.provide(changedStore(slow)))
    const processes = []
    for (const skew of [0, 1500, -1500, 900]) processes.push(yield* slowly(skew))
    const step = 20
    for (let played = 0; played < ticksPlayed; played += step) {
      yield* TestClock.adjust(step * 1000)
      // now and then one of them is replaced
      if (played % 100 === 40) {
        processes.push(yield* slowly(Math.floor(random() * 3000) - 1500))
        const closing = yield* background(processes.shift()!.close)
        while (closing.pollUnsafe() === undefined) yield* TestClock.adjust(1)
      }
    }
    // the last ones are on their way
    yield* TestClock.adjust(500)
    const seen = ticks.length
    for (const { close } of processes) {
      const closing = yield* background(close)
      while (closing.pollUnsafe() === undefined) yield* TestClock.adjust(1)
    }
    assert.isAtLeast(seen, ticksPlayed)
    assertConsecutive(ticks)
  })

  test("A schedule without a time zone is in UTC, wherever its process runs", function* () {
    const zone = env.TZ
    // the clocks are put back on 28 October 2001
    env.TZ = "Europe/Zurich"
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        if (zone === undefined) delete env.TZ
        else env.TZ = zone
      })
    )
    assert.notStrictEqual(new Date(2001, 9, 27).getTimezoneOffset(), new Date(2001, 9, 29).getTimezoneOffset())
    const ticks: Array<string> = []
    const job = DistributedCron.layer({
      name: freshName("cron"),
      cron: Cron.parse("0 4 * * *"),
      execute: Effect.map(DistributedCron.CurrentScheduledTime, (time) => ticks.push(DateTime.formatIso(time)))
    })
    const { close } = yield* process(job)
    yield* TestClock.adjust("60 days")
    yield* close
    assert.lengthOf(ticks, 60)
    for (const [i, tick] of ticks.entries()) {
      assert.strictEqual(tick, new Date(Date.UTC(2001, 8, 9 + i, 4)).toISOString())
    }
  })

  test("Ticks follow the time zone of the schedule through the change to summer time", function* () {
    const cron = Result.getOrThrow(Cron.parse("30 2 * * *", "Europe/Zurich"))
    const ticks: Array<string> = []
    const job = DistributedCron.layer({
      name: freshName("cron"),
      cron,
      execute: Effect.map(DistributedCron.CurrentScheduledTime, (time) => ticks.push(DateTime.formatIso(time)))
    })
    const { close } = yield* process(job)
    yield* TestClock.adjust("210 days")
    yield* close
    const first = new Date(ticks[0]!)
    const expected = ticks.slice(1).reduce<Array<Date>>((all) => [...all, Cron.next(cron, all.at(-1)!)], [first])
    assert.deepStrictEqual(
      ticks,
      expected.map((date) => date.toISOString())
    )
    assert.isAtLeast(ticks.length, 209)
    assert.strictEqual(new Set(ticks.map((tick) => tick.slice(11))).size, 2)
  })

  test("A tick that is weeks away comes by the server's clock at a process whose own clock is slow", function* () {
    const clock = yield* Clock.Clock
    // by a minute and a half a day
    const slow: Clock.Clock = Object.create(clock, {
      sleep: { value: (duration: Duration.Duration) => clock.sleep(Duration.times(duration, 1.001)) }
    })
    const lateMillis: Array<number> = []
    const job = DistributedCron.layer({
      name: freshName("cron"),
      cron: Cron.parse("0 0 0 1 * *"),
      execute: Effect.map(scheduled, (tick) =>
        lateMillis.push((virtualEpochSeconds - tick) * 1000 + clock.currentTimeMillisUnsafe())
      )
    })
    const { close } = yield* process(job).pipe(Effect.provideService(Clock.Clock, slow))
    while (lateMillis.length === 0) yield* TestClock.adjust("1 minute")
    yield* close
    // what it has lost since it last looked at the server's, and the minute here
    assert.isAtMost(lateMillis[0]!, 150_000)
  })
})
