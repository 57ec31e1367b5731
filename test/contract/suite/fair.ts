/**
 * What fair locks add: order across clients.
 */
import { assert } from "@effect/vitest"
import { Clock, Duration, Effect, Fiber, Option } from "effect"
import { Lock, LockStore } from "effect-redis-lock"
import type { AnyLock, Contract } from "./contract.ts"
import { runOperation } from "../../kit/storeOperations.ts"

const keysOf = (name: string) => ({
  queue: `redisson_lock_queue:{${name}}`,
  timeouts: `redisson_lock_timeout:{${name}}`,
  clients: `effect_redis_lock_clients:{${name}}`,
  channel: `redisson_lock__channel:{${name}}`,
  token: `redisson_lock_token:{${name}}`
})

/** A waiter of another client, played by commands. */
const ghost = (lock: AnyLock, thread?: string) => {
  const { channel, clients, queue, timeouts, token } = keysOf(lock.name)
  const client = crypto.randomUUID()
  const owner = thread ?? `${client}:1`
  const run = (operation: LockStore.Operation, keys: Array<string>, args: Array<string | number>) =>
    LockStore.LockStore.use((store) => runOperation(store, operation, [lock.name, ...keys], args))
  const report = (lifeMillis: number, waiting: ReadonlyArray<string>, gone: ReadonlyArray<string> = []) =>
    Effect.map(
      run(
        "fair_lock/refresh",
        [channel, queue, timeouts, clients],
        ["PUBLISH", 300_000, client, lifeMillis, 1, waiting.length, ...waiting, ...gone]
      ),
      (reply) => (reply as ReadonlyArray<unknown>)[1]
    )
  const refresh = (...waiting: ReadonlyArray<string>) => report(60_000, waiting)
  return {
    owner,
    /** Queues up, and counts as alive for so long. */
    ask: (lifeMillis: number, leaseMillis = 60_000) =>
      run(
        "fair_lock/acquire",
        [token, queue, timeouts, clients, channel],
        [owner, leaseMillis, 86_400_000, 300_000, client, lifeMillis, "PUBLISH", 1]
      ),
    /** Asks once, without a place. */
    tryAsk: run(
      "fair_lock/acquire",
      [token, queue, timeouts, clients, channel],
      [owner, 60_000, 86_400_000, 0, client, 60_000, "PUBLISH", 1]
    ),
    leave: (who = owner) =>
      run("fair_lock/release", [channel, queue, timeouts, clients, token], [who, "PUBLISH", 2000, 86_400_000, 300_000]),
    /** Reports that nobody of its client waits, and that another owner has gone. */
    nobodyWaits: report(0, [], [`${client}:2`]),
    /** Who is first in the queue, for a client that asks at this moment. */
    head: refresh(),
    /** The same, for a client that waits. */
    headWhileWaiting: refresh(owner)
  }
}

export const fairness = ({
  elsewhere,
  failure,
  freshLock,
  holdElsewhere,
  outcome,
  pass,
  succeeded,
  suite,
  typeOf,
  until,
  untilDenied,
  virtual
}: Contract): void => {
  const assertNoQueue = (lock: AnyLock) =>
    Effect.gen(function* () {
      const { clients, queue, timeouts } = keysOf(lock.name)
      for (const key of [queue, timeouts, clients]) assert.strictEqual(yield* typeOf(key), "none", key)
    })

  suite("fairness", (test) => {
    test("A fair lock serves in the order of asking, across clients", function* () {
      const lock = yield* freshLock
      const order: Array<number> = []
      const other = yield* holdElsewhere(lock)
      const fibers: Array<Fiber.Fiber<void, unknown>> = []
      for (let i = 0; i < 6; i++) {
        const mine = Effect.sync(() => void order.push(i)).pipe(Lock.withLock(lock))
        fibers.push(
          yield* untilDenied(
            lock,
            1,
            Effect.forkChild(i % 2 === 0 ? mine : elsewhere(mine), { startImmediately: true })
          )
        )
      }
      yield* other.letGo
      for (const fiber of fibers) yield* succeeded(fiber)
      assert.deepStrictEqual(order, [0, 1, 2, 3, 4, 5])
      yield* assertNoQueue(lock)
    })

    test("A waiter of a fair lock is not overtaken by a request that does not wait, though the lock is free", function* () {
      const lock = yield* freshLock
      const first = ghost(lock)
      yield* Effect.andThen(first.ask(60_000), pass(Duration.zero)).pipe(Lock.withLock(lock))
      assert.strictEqual(yield* first.head, first.owner)
      assert.isFalse(yield* Lock.isLocked(lock))
      assert.isTrue(Option.isNone(yield* Effect.scoped(Lock.tryScoped(lock))))
      assert.isTrue(Option.isNone(yield* Lock.withLockIfAvailable(Effect.void, lock)))
      const error = yield* Effect.flip(Lock.withLock(Effect.void, lock, { waitTime: 0 }))
      assert.strictEqual(error._tag === "LockTimeout" ? error.next : error._tag, first.owner)
      assert.include(error.message, `was free, but ${first.owner} is first in its queue`)
      const waiting = yield* untilDenied(
        lock,
        1,
        Effect.forkChild(Lock.withLock(Effect.succeed("mine"), lock), { startImmediately: true })
      )
      yield* pass(Duration.millis(50))
      assert.isUndefined(waiting.pollUnsafe())
      // the first gives up: the next is told
      yield* first.leave()
      assert.strictEqual(yield* virtual ? Fiber.join(waiting) : succeeded(waiting), "mine")
      yield* assertNoQueue(lock)
    })

    test("A fair lock counts the silence of a client only while the store answered others", function* () {
      const lock = yield* freshLock
      const silent = ghost(lock)
      const other = ghost(lock)
      yield* Effect.andThen(silent.ask(900), other.ask(60_000)).pipe(Lock.withLock(lock))
      // nothing is run for longer than half a second, after which whoever waits would have reported
      yield* pass(Duration.millis(800))
      assert.strictEqual(yield* other.head, silent.owner)
      yield* pass(Duration.millis(400))
      assert.strictEqual(yield* other.head, silent.owner)
      // once, and not for ever
      let heads = 2
      while ((yield* other.head) === silent.owner) {
        assert.isBelow(++heads, 20)
        yield* pass(Duration.millis(500))
      }
      if (virtual) assert.strictEqual(heads, 7)
      yield* other.leave()
      yield* assertNoQueue(lock)
    })

    test("A fair lock passes over waiters whose client has not reported for too long", function* () {
      const lock = yield* freshLock
      const other = yield* holdElsewhere(lock)
      const dead = [ghost(lock), ghost(lock), ghost(lock)]
      for (const { ask } of dead) yield* ask(1)
      const waiting = yield* untilDenied(
        lock,
        1,
        Effect.forkChild(Lock.withLock(Effect.succeed("mine"), lock), { startImmediately: true })
      )
      yield* pass(Duration.millis(10))
      yield* other.letGo
      assert.strictEqual(yield* virtual ? Fiber.join(waiting) : succeeded(waiting), "mine")
    })

    for (const what of ["waits", "asks"] as const) {
      test(`A fair lock keeps no note of a client that reports that its holder still ${what}`, function* () {
        const lock = yield* freshLock
        const granted = ghost(lock)
        yield* granted.ask(60_000)
        yield* what === "waits" ? granted.headWhileWaiting : granted.head
        yield* assertNoQueue(lock)
        yield* granted.leave()
      })
    }

    test("An owner that asks again, unaware that it was granted a fair lock, has its lease from then on", function* () {
      const lock = yield* freshLock
      const granted = ghost(lock)
      const left = Effect.map(Lock.remainingTime(lock), (left) => Duration.toSeconds(Option.getOrThrow(left)))
      yield* granted.ask(60_000, 10_000)
      assert.isAtMost(yield* left, 10)
      yield* granted.ask(60_000, 60_000)
      assert.isAbove(yield* left, 10)
      // and keeps it, whatever comes late
      yield* granted.ask(60_000, 10_000)
      assert.isAbove(yield* left, 10)
      yield* granted.leave()
    })

    test("A place that a late command has made for a client of which nobody waits holds up nobody", function* () {
      const lock = yield* freshLock
      const [late, other] = [ghost(lock), ghost(lock)]
      yield* Effect.gen(function* () {
        yield* late.ask(60_000)
        yield* other.ask(60_000)
        yield* late.nobodyWaits
        assert.strictEqual(yield* other.headWhileWaiting, other.owner)
      }).pipe(Lock.withLock(lock))
      yield* other.leave()
      assert.strictEqual(yield* Lock.withLock(Effect.succeed("mine"), lock, { waitTime: "30 seconds" }), "mine")
      yield* assertNoQueue(lock)
    })

    const lastDead = ["a request that does not wait", "a forced release", "the holder that asks again"] as const
    for (const remover of lastDead) {
      test(`A fair lock keeps no note of clients when ${remover} has removed the last place of the dead`, function* () {
        const lock = yield* freshLock
        const [holder, dead, other] = [ghost(lock), ghost(lock), ghost(lock)]
        yield* holder.ask(60_000)
        yield* dead.ask(0)
        if (remover === "a forced release") yield* Lock.forceRelease(lock)
        else yield* remover === "the holder that asks again" ? holder.ask(60_000) : other.tryAsk
        yield* assertNoQueue(lock)
        yield* holder.leave()
      })
    }

    for (const how of ["timed out", "was interrupted"] as const) {
      test(`A waiter of a fair lock that ${how} leaves nothing, and the next is served at once`, function* () {
        const lock = yield* freshLock
        const other = yield* holdElsewhere(lock)
        const wait = (n: number, options?: Lock.AcquireOptions) =>
          untilDenied(
            lock,
            1,
            Effect.forkChild(Lock.withLock(Effect.succeed(n), lock, options), { startImmediately: true })
          )
        const giveUp = (fiber: Fiber.Fiber<number, unknown>) =>
          how === "timed out"
            ? Effect.map(outcome(fiber), (exit) =>
                assert.strictEqual((failure(exit) as { _tag: string })._tag, "LockTimeout")
              )
            : Fiber.interrupt(fiber)
        const options = how === "timed out" ? { waitTime: 300 } : {}

        const only = yield* wait(0, options)
        yield* giveUp(only)
        yield* assertNoQueue(lock)

        const first = yield* wait(1, options)
        const second = yield* wait(2)
        yield* giveUp(first)
        yield* other.letGo
        assert.strictEqual(yield* virtual ? Fiber.join(second) : succeeded(second), 2)
        yield* assertNoQueue(lock)
      })
    }

    test("A waiter of a fair lock that was taken for dead gets a new place", function* () {
      const lock = yield* freshLock
      const other = yield* holdElsewhere(lock)
      const waiting = yield* untilDenied(
        lock,
        1,
        Effect.forkChild(Lock.withLock(Effect.succeed("mine"), lock), { startImmediately: true })
      )
      const watcher = ghost(lock)
      const owner = yield* watcher.head
      assert.isString(owner)
      yield* watcher.ask(60_000)
      yield* watcher.leave(owner as string)
      // it may be there again already, but behind
      assert.strictEqual(yield* watcher.head, watcher.owner)
      yield* watcher.leave()
      yield* until(Effect.map(watcher.head, (head) => head === owner))
      yield* other.letGo
      assert.strictEqual(yield* succeeded(waiting), "mine")
    })

    if (virtual) {
      test("A dead Redisson waiter is passed over as soon as by Redisson, however many were served before it", function* () {
        const lock = yield* freshLock
        const ours = Array.from({ length: 20 }, () => ghost(lock))
        // its client is not noted
        const [java, last] = [ghost(lock, "2a5b1f3e-0000-4000-8000-000000000001:7"), ghost(lock)]
        for (const { ask } of [...ours, java, last]) yield* ask(36_000_000)
        for (const { ask, leave } of ours) {
          yield* ask(36_000_000)
          yield* leave()
        }
        assert.strictEqual(yield* last.headWhileWaiting, java.owner)
        for (let seconds = 0; seconds < 299; seconds++) {
          yield* pass(Duration.seconds(1))
          assert.strictEqual(yield* last.headWhileWaiting, java.owner)
        }
        // the holder's lease counts as well
        yield* pass(Duration.seconds(61))
        assert.strictEqual(yield* last.headWhileWaiting, last.owner)
        yield* last.leave()
        yield* assertNoQueue(lock)
      })

      test("Waiters of a fair lock that all died while nobody else asked hold up the next request for five seconds", function* () {
        const lock = yield* freshLock
        yield* Effect.asVoid(Effect.all([ghost(lock).ask(1500), ghost(lock).ask(1500)])).pipe(Lock.withLock(lock))
        yield* pass(Duration.seconds(60))
        const [served, startedAt] = yield* Effect.all([
          Effect.forkChild(Lock.withLock(Clock.currentTimeMillis, lock)),
          Clock.currentTimeMillis
        ])
        const waited = (yield* succeeded(served)) - startedAt
        assert.isAtLeast(waited, 4900)
        assert.isAtMost(waited, 5600)
        yield* assertNoQueue(lock)
      })

      test("Waiters of a fair lock that all died while nobody else asked hold up at most six requests that do not wait", function* () {
        const lock = yield* freshLock
        yield* Effect.asVoid(ghost(lock).ask(1500)).pipe(Lock.withLock(lock))
        const refused: Array<boolean> = []
        for (let i = 0; i < 7; i++) {
          yield* pass(Duration.seconds(60))
          refused.push(Option.isNone(yield* Lock.withLockIfAvailable(Effect.void, lock)))
        }
        assert.deepStrictEqual(refused, [true, true, true, true, true, true, false])
      })

      test("A waiter of a fair lock keeps its place while it waits", function* () {
        const lock = yield* freshLock
        const order: Array<string> = []
        const other = yield* holdElsewhere(lock)
        const wait = (who: string) => Effect.sync(() => void order.push(who)).pipe(Lock.withLock(lock))
        const first = yield* untilDenied(lock, 1, Effect.forkChild(wait("first"), { startImmediately: true }))
        const second = yield* untilDenied(
          lock,
          1,
          Effect.forkChild(elsewhere(wait("second")), { startImmediately: true })
        )
        yield* pass(Duration.minutes(10))
        const third = yield* untilDenied(lock, 1, Effect.forkChild(wait("third"), { startImmediately: true }))
        yield* pass(Duration.minutes(10))
        yield* other.letGo
        for (const fiber of [first, second, third]) yield* Fiber.join(fiber)
        assert.deepStrictEqual(order, ["first", "second", "third"])
      })
    }
  })
}
