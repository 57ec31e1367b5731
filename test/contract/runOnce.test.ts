/**
 * What work that is done once must do on every store: on memory under virtual time, and on Redis in real time.
 */
import { assert } from "@effect/vitest"
import { Deferred, Duration, Effect, Exit, Fiber, Option, References, Schema } from "effect"
import {
  InvalidLockName,
  InvalidLockOptions,
  Lock,
  LockReentered,
  LockStoreError,
  RedisLock,
  RunOnce
} from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { background } from "../kit/background.ts"
import { freshName } from "../kit/names.ts"
import { wrappedStore } from "../kit/wrappedStore.ts"
import { expectWarning } from "../run/logs.ts"
import { type Backend, backends, coordinated } from "./coordinated.ts"

const numbered = (timeToLive: Duration.Input = "1 hour") =>
  RunOnce.make(freshName("once"), { timeToLive, result: Schema.Struct({ number: Schema.Number }) })

const contract = (backend: Backend): void => {
  const { elsewhere, joined, over, suite, until, virtual } = coordinated(backend)

  suite(`work that is done once on ${backend.name}`, (test) => {
    test("The first caller runs, and all others get its result, in whatever process they are", function* () {
      const once = numbered()
      let runs = 0
      const go = yield* Deferred.make<void>()
      const work = Effect.suspend(() => Effect.as(Deferred.await(go), { number: ++runs }))
      assert.deepStrictEqual(yield* RunOnce.result(once), Option.none())
      const callers = []
      for (let i = 0; i < 20; i++) {
        const run = RunOnce.run(work, once)
        callers.push(i % 2 === 0 ? yield* background(run) : yield* background(elsewhere(run)))
      }
      yield* until(() => runs === 1)
      yield* Deferred.succeed(go, undefined)
      for (const caller of callers) assert.deepStrictEqual(yield* joined(caller), { number: 1 })
      assert.strictEqual(runs, 1)
      assert.deepStrictEqual(yield* elsewhere(RunOnce.run(work, once)), { number: 1 })
      assert.deepStrictEqual(yield* elsewhere(RunOnce.result(once)), Option.some({ number: 1 }))
      assert.isFalse(yield* Lock.isLocked(once.name))
    })

    /** A runner in another process whose effect runs, and never ends. */
    const runner = Effect.fnUntraced(function* (once: ReturnType<typeof numbered>) {
      let isRunning = false
      const work = Effect.andThen(
        Effect.sync(() => (isRunning = true)),
        Effect.never
      )
      const running = yield* background(elsewhere(RunOnce.run(work, once)))
      yield* until(() => isRunning)
      return running
    })

    /** A caller whose effect runs, and fails when it is let go. */
    const runningUntilItFails = (once: ReturnType<typeof numbered>) =>
      Effect.gen(function* () {
        const go = yield* Deferred.make<void>()
        let isRunning = false
        const work = Effect.suspend(() => {
          isRunning = true
          return Effect.andThen(Deferred.await(go), Effect.fail("no"))
        })
        const failing = yield* background(Effect.exit(RunOnce.run(work, once)))
        yield* until(() => isRunning)
        return { failing, go }
      })

    test("A failure is the caller's alone, and the next one that waits runs its own effect", function* () {
      const once = numbered()
      const { failing, go } = yield* runningUntilItFails(once)
      const next = yield* background(elsewhere(RunOnce.run(Effect.succeed({ number: 2 }), once)))
      yield* Deferred.succeed(go, undefined)
      assert.deepStrictEqual(yield* Fiber.join(failing), Exit.fail("no"))
      assert.deepStrictEqual(yield* joined(next), { number: 2 })
    })

    for (const problem of ["a transient failure", "the loss of its lock"]) {
      test(`A waiter goes on after ${problem} that comes when it has its turn and has run nothing`, function* () {
        const once = numbered()
        const { failing, go } = yield* runningUntilItFails(once)
        let asked = 0
        let hasFailed = false
        let isSilent = false
        const next = yield* background(
          RunOnce.run(Effect.succeed({ number: 2 }), once).pipe(
            over(
              (store) =>
                wrappedStore(store, ({ fail, operation, run }) => {
                  if (isSilent) return Effect.never
                  if (operation === "lock/acquire") asked++
                  if (operation !== "record/read") return run()
                  return Effect.flatMap(Effect.service(References.CurrentLogAnnotations), ({ lock }) => {
                    // what it reads in the section, and not what it hears of others meanwhile
                    if (hasFailed || lock === undefined) return run()
                    hasFailed = true
                    if (problem === "a transient failure") return fail("TimedOut")
                    // until the loss interrupts this
                    isSilent = true
                    return Effect.onInterrupt(Effect.never, () => Effect.sync(() => (isSilent = false)))
                  })
                }),
              // only the loss needs its lease to end soon, and in real time not because the machine is busy
              problem === "a transient failure" ? {} : { watchdogLeaseTime: virtual ? "1 second" : "6 seconds" }
            )
          )
        )
        yield* until(() => asked >= 2)
        yield* Deferred.succeed(go, undefined)
        assert.deepStrictEqual(yield* Fiber.join(failing), Exit.fail("no"))
        assert.deepStrictEqual(yield* joined(next), { number: 2 })
        assert.isTrue(hasFailed)
      })
    }

    const releaseWentWrong = /^The result of a RunOnce is stored, but its lock's release went wrong\./

    for (const problem of ["is not confirmed", "finds the lock lost"]) {
      /** A client whose first release goes wrong, and what happens before it acquires the lock. */
      const releasing = (before: Effect.Effect<unknown>) => {
        let releases = 0
        return over(
          (store) =>
            wrappedStore(store, ({ fail, operation, run }) => {
              if (operation === "lock/acquire") return Effect.andThen(before, run())
              if (!operation.endsWith("/release") || ++releases > 1) return run()
              return problem === "is not confirmed" ? fail("TimedOut") : Effect.as(run(), 0)
            }),
          { releaseTimeout: "1 millis" }
        )
      }

      test(`A caller that has stored its result gets it, even if the release ${problem}`, function* () {
        expectWarning(releaseWentWrong)
        const once = numbered()
        const result = { number: 1 }
        const run = RunOnce.run(Effect.succeed(result), once)
        assert.strictEqual(yield* joined(yield* background(releasing(Effect.void)(run))), result)
        assert.deepStrictEqual(yield* RunOnce.result(once), Option.some(result))
      })

      test(`A caller that finds a result in its turn gets it, even if the release ${problem}`, function* () {
        expectWarning(releaseWentWrong)
        const once = numbered()
        // another one is done between its look and its turn
        const others = Effect.orDie(RunOnce.run(Effect.succeed({ number: 1 }), once))
        const context = yield* Effect.context<RedisLock.RedisLock>()
        const late = RunOnce.run(Effect.succeed({ number: 2 }), once).pipe(
          releasing(Effect.provideContext(others, context))
        )
        assert.deepStrictEqual(yield* joined(yield* background(late)), { number: 1 })
      })
    }

    for (const reason of ["OutOfMemory", "PersistenceFailed", "Failed"] as const) {
      test(`A result is stored although Redis refuses it at first: ${reason}`, function* () {
        const once = numbered()
        const result = { number: 1 }
        let refused = 0
        const run = RunOnce.run(Effect.succeed(result), once).pipe(
          over((store) =>
            wrappedStore(store, ({ fail, operation, run }) =>
              operation === "record/write" && refused++ < 2 ? fail(reason) : run()
            )
          )
        )
        assert.strictEqual(yield* joined(yield* background(run)), result)
        assert.deepStrictEqual(yield* RunOnce.result(once), Option.some(result))
      })
    }

    test("A result that Redis refuses for longer than a lease is lost, and the failure says that the work is done", function* () {
      const once = numbered()
      const run = RunOnce.run(Effect.succeed({ number: 1 }), once).pipe(
        over(
          (store) =>
            wrappedStore(store, ({ fail, operation, run }) =>
              operation === "record/write" ? fail("OutOfMemory") : run()
            ),
          { watchdogLeaseTime: "1 second" }
        )
      )
      const error = yield* joined(yield* background(Effect.flip(run)))
      assert.instanceOf(error, LockStoreError)
      assert.deepInclude(error, { lock: once.name, reason: "OutOfMemory", workDone: true })
      assert.include(error.message, "the work is done")
      assert.isFalse(yield* Lock.isLocked(once.name))
    })

    test("A runner that is interrupted is taken over by the next one that waits", function* () {
      const once = numbered()
      const first = yield* runner(once)
      const next = yield* background(RunOnce.run(Effect.succeed({ number: 2 }), once))
      yield* Fiber.interrupt(first)
      assert.deepStrictEqual(yield* joined(next), { number: 2 })
    })

    test("A runner is not interrupted by its own result, which others read before its write is answered", function* () {
      const once = numbered()
      const result = { number: 2 }
      let hasAsked = false
      const first = yield* runner(once)
      const next = yield* background(
        RunOnce.run(Effect.succeed(result), once).pipe(
          over((store) => ({
            ...store,
            run: (command) => {
              const answer = store.run(command)
              hasAsked ||= command.operation.name.endsWith("/acquire")
              return command.operation.name === "record/write"
                ? Effect.tap(answer, () => Effect.sleep("1 second"))
                : answer
            }
          }))
        )
      )
      yield* until(() => hasAsked)
      yield* Fiber.interrupt(first)
      // the very value, and not what was read of it
      assert.strictEqual(yield* joined(next), result)
    })

    test("A caller learns of a result by itself, even after another caller of its process has given up", function* () {
      expectWarning(releaseWentWrong)
      const once = numbered()
      const go = yield* Deferred.make<void>()
      let isRunning = false
      let isWritten = false
      // its result is there, but its lock is not released before the lease ends
      const runner = yield* background(
        RunOnce.run(
          Effect.suspend(() => {
            isRunning = true
            return Effect.as(Deferred.await(go), { number: 1 })
          }),
          once
        ).pipe(
          over(
            (store) => ({
              ...store,
              run: (command) => {
                isWritten ||= command.operation.name === "record/write"
                return isWritten && command.operation.name !== "record/write" ? Effect.never : store.run(command)
              }
            }),
            { releaseTimeout: "1 millis" }
          )
        )
      )
      yield* until(() => isRunning)
      const early = yield* background(RunOnce.run(Effect.succeed({ number: 2 }), once))
      const late = yield* background(RunOnce.run(Effect.succeed({ number: 3 }), once))
      yield* Fiber.interrupt(early)
      yield* Fiber.interrupt(late)
      const last = yield* background(RunOnce.run(Effect.succeed({ number: 4 }), once))
      yield* Deferred.succeed(go, undefined)
      assert.deepStrictEqual(yield* joined(last), { number: 1 })
      assert.isTrue(yield* Lock.isLocked(once.name), "it did not have to wait for the lock")
      assert.deepStrictEqual(yield* joined(runner), { number: 1 })
    })

    test("A runner that has died is taken over when its lease is over", function* () {
      const once = numbered()
      let isRunning = false
      yield* Effect.gen(function* () {
        // it renews nothing, and gives nothing back
        const dead = yield* background(
          RunOnce.run(
            Effect.andThen(
              Effect.sync(() => (isRunning = true)),
              Effect.never
            ),
            once
          ).pipe(
            over(
              (store) => ({
                ...store,
                run: (command) => (/renew|release/.test(command.operation.name) ? Effect.never : store.run(command))
              }),
              { watchdogLeaseTime: "2 seconds", releaseTimeout: "1 millis" }
            )
          )
        )
        yield* until(() => isRunning)
        const next = yield* background(
          RunOnce.run(Effect.succeed({ number: 2 }), once).pipe(
            over((store) => store, { fallbackInterval: "200 millis" })
          )
        )
        assert.deepStrictEqual(yield* joined(next), { number: 2 })
        dead.interruptUnsafe()
      })
    })

    test("A result is kept for its time to live, and the work is done again afterwards", function* () {
      const once = numbered(virtual ? "1 hour" : "300 millis")
      let runs = 0
      const run = RunOnce.run(
        Effect.sync(() => ({ number: ++runs })),
        once
      )
      yield* run
      if (virtual) {
        yield* TestClock.adjust("59 minutes")
        assert.deepStrictEqual(yield* run, { number: 1 })
        yield* TestClock.adjust("1 minute")
      } else {
        yield* Effect.sleep("400 millis")
      }
      assert.deepStrictEqual(yield* run, { number: 2 })
    })

    test("Two that run each other's work within their own do not wait for themselves", function* () {
      const once = numbered()
      const nested = RunOnce.run(RunOnce.run(Effect.succeed({ number: 1 }), once), once)
      assert.instanceOf(yield* Effect.flip(nested), LockReentered)
      assert.deepStrictEqual(yield* RunOnce.result(once), Option.none())
    })

    test("What is kept under the name and is no such result fails, and so does an invalid name or time to live", function* () {
      const once = numbered()
      const text = RunOnce.make(once.name, { timeToLive: "1 hour", result: Schema.String })
      yield* RunOnce.run(Effect.succeed("text"), text)
      assert.propertyVal(yield* Effect.flip(RunOnce.run(Effect.succeed({ number: 1 }), once)), "_tag", "SchemaError")
      assert.propertyVal(yield* Effect.flip(RunOnce.result(once)), "_tag", "SchemaError")
      const nameless = RunOnce.make("", { timeToLive: "1 hour", result: Schema.String })
      assert.instanceOf(yield* Effect.flip(RunOnce.run(Effect.succeed(""), nameless)), InvalidLockName)
      for (const timeToLive of [0, Infinity, -1, Number.NaN, { hours: "1", seconds: 5 } as unknown as Duration.Input]) {
        const error = yield* Effect.flip(RunOnce.run(Effect.succeed({ number: 1 }), numbered(timeToLive)))
        assert.instanceOf(error, InvalidLockOptions)
        assert.strictEqual(error.option, "timeToLive")
      }
      const bound = RunOnce.provide(text, yield* RedisLock.RedisLock)
      assert.strictEqual(yield* RunOnce.run(Effect.succeed("other"), bound), "text")
      assert.isTrue(RunOnce.isRunOnce(bound))
    })
  })
}

for (const backend of backends) contract(backend)
