/**
 * A program that ends while the store is away ends within one release timeout, whatever it holds.
 */
import { assert } from "@effect/vitest"
import { Clock, Context, Effect, Exit, Fiber, Layer, Schema, Scope } from "effect"
import { TestClock } from "effect/testing"
import {
  FairLock,
  LeaderElection,
  Lock,
  MultiLock,
  PermitSemaphore,
  ReadWriteLock,
  RedisLock,
  RedLock,
  Semaphore
} from "effect-redis-lock"
import { clientLayer, clientOf, type Service, testStore } from "../kit/testStore.ts"
import { expectWarning } from "../run/logs.ts"
import { test } from "../kit/test.ts"

const times = Array.from({ length: 20 }, (_, i) => i)
const each = <A, E, R>(f: (i: number) => Effect.Effect<A, E, R>) => Effect.forEach(times, f, { discard: true })

type Program = Effect.Effect<unknown, unknown, RedisLock.RedisLock | Scope.Scope>

const nested = (i: number): Effect.Effect<void, unknown, RedisLock.RedisLock> =>
  i === 0 ? Effect.never : Lock.withLock(nested(i - 1), `nested:${i}`)

const election = LeaderElection.make("election", { value: Schema.String })

/** What a program holds; `other` is a client whose store goes on answering. */
const programs: Record<string, (other: Service) => Program> = {
  "one lock": () => Lock.scoped("a"),
  "one section": () => Lock.withLock(Effect.never, "a"),
  "20 locks in one scope": () => each((i) => Lock.scoped(`a:${i}`)),
  "20 holds of one lock in one scope": () => each(() => Lock.scoped("a")),
  "20 fair locks in one scope": () => each((i) => Lock.scoped(FairLock.make(`a:${i}`))),
  "20 read locks in one scope": () => each((i) => Lock.scoped(ReadWriteLock.make(`a:${i}`).readLock)),
  "20 permits in one scope": () => each(() => Semaphore.scoped(Semaphore.make("a", { permits: 20 }), 1)),
  "20 leased permits in one scope": () =>
    each(() => PermitSemaphore.scoped(PermitSemaphore.make("a", { permits: 20 }))),
  "20 MultiLocks in one scope": () =>
    each((i) => Lock.scoped(MultiLock.make([Lock.make(`a:${i}`), FairLock.make(`b:${i}`)]))),
  "20 MultiLocks that another store keeps as well": (other) =>
    each((i) => Lock.scoped(MultiLock.make([Lock.provide(Lock.make(`a:${i}`), other), Lock.make(`b:${i}`)]))),
  "20 RedLocks in one scope": (other) =>
    each((i) =>
      Lock.scoped(RedLock.make([Lock.make(`a:${i}`), Lock.make(`b:${i}`), Lock.provide(Lock.make(`c:${i}`), other)]))
    ),
  "sections inside sections": () => nested(20),
  "20 sections beside each other": () =>
    Effect.forEach(times, (i) => Lock.withLock(Effect.never, `a:${i}`), { concurrency: "unbounded" }),
  "a section in a scope with locks": () =>
    Effect.andThen(
      each((i) => Lock.scoped(`a:${i}`)),
      Lock.withLock(Effect.never, "b")
    ),
  "20 leaderships": () => each((i) => LeaderElection.campaign(LeaderElection.make(`election:${i}`))),
  "a leader's section inside a section": () =>
    Lock.withLock(LeaderElection.whileLeader(Effect.never, election, { proclaim: "me" }), "a")
}

const ways = {
  "is silent": { isDown: false, delay: () => 600_000 },
  refuses: { isDown: true, delay: () => 0 }
}
for (const [way, fault] of Object.entries(ways)) {
  for (const [what, program] of Object.entries(programs)) {
    test(`A program that holds ${what} ends within one release timeout when its store ${way}`, function* () {
      expectWarning(/./)
      const server = yield* testStore()
      const store = { ...server.store, commandLifeMillis: 10_000, commandTimeoutMillis: 60_000 }
      const other = yield* clientOf(yield* testStore())
      const layer = clientLayer(store, { releaseTimeout: "5 seconds", watchdogLeaseTime: "5 minutes" })
      const clients = yield* Scope.make()
      const service = Context.get(yield* Layer.buildWithScope(Layer.fresh(layer), clients), RedisLock.RedisLock)
      const running = yield* Effect.scoped(Effect.andThen(program(other), Effect.never)).pipe(
        Effect.provideService(RedisLock.RedisLock, service),
        Effect.forkChild
      )
      yield* TestClock.adjust("2 seconds")
      assert.isUndefined(running.pollUnsafe())
      assert.isAbove(server.operations.length, 0)
      Object.assign(server, fault)
      const begun = yield* Clock.currentTimeMillis
      const ending = yield* Fiber.interrupt(running).pipe(
        Effect.andThen(Scope.close(clients, Exit.void)),
        Effect.andThen(Clock.currentTimeMillis),
        Effect.forkChild
      )
      yield* TestClock.adjust("5 seconds")
      // closing takes a moment of real time
      yield* TestClock.withLive(Effect.timeoutOption(Fiber.await(ending), "4 seconds"))
      // what is late ends as well, or the test would not end
      yield* TestClock.adjust("10 minutes")
      assert.isAtMost((yield* Fiber.join(ending)) - begun, 5000)
    })
  }
}
