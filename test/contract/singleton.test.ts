/**
 * What singletons must do on every store: on memory under virtual time, and on Redis in real time.
 */
import { assert } from "@effect/vitest"
import { Clock, Deferred, Effect, Exit, Fiber, Layer, Schedule, Scope, Stream } from "effect"
import { InvalidLockName, LeaderElection, Lock, type RedisLock, Singleton } from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { background } from "../kit/background.ts"
import { freshName } from "../kit/names.ts"
import { wrappedStore } from "../kit/wrappedStore.ts"
import { expectWarning } from "../run/logs.ts"
import { type Backend, backends, coordinated } from "./coordinated.ts"

const contract = (backend: Backend): void => {
  const { elsewhere, over, suite, until, virtual } = coordinated(backend)

  /** Builds the layer as another process would, until it is told to close. */
  const process = Effect.fnUntraced(function* (layer: Layer.Layer<never, InvalidLockName, RedisLock.RedisLock>) {
    const told = yield* Deferred.make<void>()
    const fiber = yield* background(
      elsewhere(Effect.scoped(Effect.andThen(Layer.build(Layer.fresh(layer)), Deferred.await(told))))
    )
    return { close: Effect.andThen(Deferred.succeed(told, undefined), Fiber.join(fiber)) }
  })

  suite(`a singleton on ${backend.name}`, (test) => {
    test("It runs in one process of all, and in the next one when that closes", function* () {
      const name = freshName("singleton")
      const runs: Array<string> = []
      const running = (process: string) =>
        Singleton.layer(
          name,
          Effect.acquireUseRelease(
            Effect.sync(() => runs.push(`${process} begins`)),
            () => Effect.never,
            () => Effect.sync(() => runs.push(`${process} ends`))
          )
        )
      const health: Array<string> = []
      yield* background(Stream.runForEach(Singleton.health(name), ({ _tag }) => Effect.sync(() => health.push(_tag))))
      yield* until(() => health.length === 1)
      const first = yield* process(running("first"))
      yield* until(() => runs.length === 1 && health.length === 2)
      const second = yield* process(running("second"))
      yield* first.close
      yield* until(() => runs.length === 3)
      yield* second.close
      assert.deepStrictEqual(runs, ["first begins", "first ends", "second begins", "second ends"])
      yield* until(() => health.at(-1) === "Vacant")
      assert.deepStrictEqual(health.slice(0, 2), ["Vacant", "Running"])
    })

    test("When it fails, another process has its turn, and the failure is logged", function* () {
      expectWarning(/A singleton or its election has failed; the process that is elected next runs it/)
      const name = freshName("singleton")
      const go = yield* Deferred.make<void>()
      let firstRuns = 0
      let secondRuns = 0
      const first = yield* process(
        Singleton.layer(
          name,
          Effect.suspend(() => {
            firstRuns++
            return Effect.andThen(Deferred.await(go), Effect.fail("no"))
          }),
          { restart: Schedule.spaced("10 millis") }
        )
      )
      yield* until(() => firstRuns === 1)
      const second = yield* process(
        Singleton.layer(
          name,
          Effect.suspend(() => {
            secondRuns++
            return Effect.never
          })
        )
      )
      yield* Effect.yieldNow
      yield* Deferred.succeed(go, undefined)
      yield* until(() => secondRuns === 1)
      yield* second.close
      yield* first.close
    })

    test("When it ends by itself, no other process runs it as long as that one lives, and everybody can see it", function* () {
      const name = freshName("singleton")
      let runs = 0
      const layer = Singleton.layer(
        name,
        Effect.gen(function* () {
          runs++
          yield* Effect.orDie(LeaderElection.currentLeadership(LeaderElection.make(name)))
        })
      )
      const first = yield* process(layer)
      const health: Array<string> = []
      yield* background(Stream.runForEach(Singleton.health(name), ({ _tag }) => Effect.sync(() => health.push(_tag))))
      yield* until(() => health.at(-1) === "Completed")
      const second = yield* process(layer)
      assert.strictEqual(runs, 1)
      yield* first.close
      yield* until(() => runs === 2)
      yield* second.close
      assert.isFalse(yield* Lock.isLocked(name))
    })

    test("When it has ended and its process loses the leadership, that process leads again and does not run it", function* () {
      const name = freshName("singleton")
      let runs = 0
      const terms: Array<bigint> = []
      yield* background(
        Stream.runForEach(Singleton.health(name), (health) =>
          Effect.sync(() => health._tag === "Completed" && terms.push(health.term))
        )
      )
      const only = yield* process(
        Singleton.layer(
          name,
          Effect.sync(() => runs++)
        )
      )
      yield* until(() => terms.length === 1)
      assert.isTrue(yield* Lock.forceRelease(name))
      yield* until(() => terms.length === 2)
      assert.isTrue(terms[1]! > terms[0]!)
      assert.strictEqual(runs, 1)
      yield* only.close
    })

    test("When its effect interrupts itself, that is logged, and it runs again", function* () {
      expectWarning(/A singleton or its election has failed; the process that is elected next runs it/)
      let runs = 0
      const only = yield* process(
        Singleton.layer(
          freshName("singleton"),
          Effect.suspend(() => (++runs === 1 ? Effect.interrupt : Effect.never)),
          { restart: Schedule.spaced("10 millis") }
        )
      )
      yield* until(() => runs === 2)
      yield* only.close
    })

    if (virtual) {
      test("When it has ended while Redis is out of memory, that is logged, and everybody sees it later", function* () {
        expectWarning(/A singleton has completed, but Redis has not recorded that yet/)
        const name = freshName("singleton")
        let writes = 0
        let isFull = true
        const told = yield* Deferred.make<void>()
        const layer = Singleton.layer(name, Effect.void)
        const only = yield* background(
          Effect.andThen(Layer.build(Layer.fresh(layer)), Deferred.await(told)).pipe(
            Effect.scoped,
            over((store) =>
              wrappedStore(store, ({ fail, operation, run }) =>
                operation === "record/write" && ++writes > 1 && isFull ? fail("OutOfMemory") : run()
              )
            )
          )
        )
        const health: Array<string> = []
        yield* background(Stream.runForEach(Singleton.health(name), ({ _tag }) => Effect.sync(() => health.push(_tag))))
        yield* TestClock.adjust("5 minutes")
        assert.strictEqual(health.at(-1), "Running")
        isFull = false
        yield* TestClock.adjust("2 minutes")
        assert.strictEqual(health.at(-1), "Completed")
        yield* Deferred.succeed(told, undefined)
        yield* Fiber.join(only)
      })

      test("It is restarted after pauses that double up to a minute, and after ten minutes without a failure begin anew", function* () {
        expectWarning(/A singleton or its election has failed; the process that is elected next runs it/)
        const starts: Array<number> = []
        const singleton = Singleton.layer(
          freshName("singleton"),
          Effect.gen(function* () {
            starts.push(yield* Clock.currentTimeMillis)
            if (starts.length === 9) yield* Effect.sleep("10 minutes")
            if (starts.length === 10) return yield* Effect.never
            return yield* Effect.fail("no")
          })
        )
        const running = yield* process(singleton)
        yield* TestClock.adjust("30 minutes")
        assert.lengthOf(starts, 10)
        const pauses = starts.slice(1).map((start, i) => start - starts[i]! - (i === 8 ? 600_000 : 0))
        // each is jittered by a fifth
        for (const [i, seconds] of [1, 2, 4, 8, 16, 32, 60, 60, 1].entries()) {
          assert.closeTo(pauses[i]!, 1000 * seconds, 210 * seconds, `pause ${i + 1}`)
        }
        yield* running.close
      })
    }

    test("An invalid name fails where the layer is built", function* () {
      const scope = yield* Scope.make()
      for (const name of ["", "redisson_lock_token:{a}"]) {
        const build = Layer.buildWithScope(Singleton.layer(name, Effect.never), scope)
        assert.instanceOf(yield* Effect.flip(build), InvalidLockName)
      }
      yield* Scope.close(scope, Exit.void)
    })
  })
}

for (const backend of backends) contract(backend)
