/**
 * After a release that has given up, those at the ends of scopes do not wait as long: but only until the server answers again.
 */
import { assert, it } from "@effect/vitest"
import { Clock, Context, Deferred, Effect, Exit, Fiber, Layer, Logger, References, Scope } from "effect"
import { Lock, RedisLock, RedLock } from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { background } from "../kit/background.ts"
import { until } from "../kit/eventually.ts"
import { testLiveQuietly } from "../kit/test.ts"
import { as, clientLayer, clientOf, type Service, testStore, type TestStore } from "../kit/testStore.ts"
import { type Store, wrappedStore } from "../kit/wrappedStore.ts"

const roundTripMillis = 5

/** Notes the locks whose scopes and sections have ended before their release was confirmed. */
const noting = (unconfirmed: Array<string>) =>
  Logger.layer([
    Logger.make(({ fiber, message }) => {
      if (!String(message).includes("its release went wrong") && !String(message).includes("The lock's release")) return
      unconfirmed.push(String(fiber.getRef(References.CurrentLogAnnotations)["lock"]))
    })
  ])

/** The number at the end of a name. */
const numberOf = (name: string) => Number(name.split(":").at(-1))

/** A store whose commands a server takes no notice of while it is silent. */
const patient = (store: Store): Store => ({ ...store, commandLifeMillis: 10_000, commandTimeoutMillis: 60_000 })

/** A cluster: the number of a name is its slot, and one server has those below 20. Commands are lost where they are to be. */
const clusterWith = (store: Store, isSilentAt: (slot: number) => boolean): Store => ({
  ...wrappedStore(patient(store), ({ keys, run }) =>
    Effect.suspend(() => (isSilentAt(numberOf(keys[0]!)) ? Effect.never : Effect.delay(run(), roundTripMillis)))
  ),
  slot: numberOf
})

/** What ends without waiting for its outcome, once it is told to. */
const ends = {
  "scopes that close": (name: string, told: Effect.Effect<void>) =>
    Effect.scoped(Effect.andThen(Lock.scoped(name), told)),
  "sections that fail": (name: string, told: Effect.Effect<void>) =>
    Effect.ignore(Lock.withLock(Effect.andThen(told, Effect.fail("no")), name))
}
for (const [title, end] of Object.entries(ends)) {
  it.effect(
    `After a silence in which one has given up, the releases of ${title} one right after the other are awaited`,
    () => {
      const unconfirmed: Array<string> = []
      return Effect.gen(function* () {
        const server = yield* testStore()
        const service = yield* clientOf({ store: patient(server.store) }, { releaseTimeout: "5 seconds" })
        const told: Array<Deferred.Deferred<void>> = []
        for (let i = 0; i < 100; i++) {
          told.push(yield* Deferred.make<void>())
          yield* background(as(service)(end(`a:${i}`, Deferred.await(told[i]!))))
        }
        server.delay = () => 600_000
        yield* Deferred.succeed(told[0]!, undefined)
        yield* TestClock.adjust("5 seconds")
        assert.deepStrictEqual(unconfirmed, ["a:0"])
        server.delay = () => roundTripMillis
        for (const each of told) {
          yield* Deferred.succeed(each, undefined)
          yield* TestClock.adjust(1)
        }
        yield* TestClock.adjust("1 minute")
        assert.isBelow(Math.max(...unconfirmed.map(numberOf)), 4 * roundTripMillis)
      }).pipe(Effect.provide(noting(unconfirmed)))
    }
  )
}

it.effect("A server of a cluster that is silent does not shorten the releases at the others again and again", () => {
  const unconfirmed: Array<string> = []
  return Effect.gen(function* () {
    let isSilent = false
    const store = clusterWith((yield* testStore()).store, (slot) => isSilent && slot < 20)
    const run = as(yield* clientOf({ store }, { releaseTimeout: "5 seconds", watchdogLeaseTime: "5 minutes" }))
    const scopes: Array<Scope.Closeable> = []
    for (let i = 0; i < 100; i++) {
      const scope = yield* Scope.make()
      yield* background(run(Scope.provide(Lock.scoped(`${i}:${i % 20}`), scope)))
      scopes.push(scope)
    }
    yield* TestClock.adjust("1 second")
    isSilent = true
    yield* background(Scope.close(scopes.pop()!, Exit.void))
    yield* TestClock.adjust("5 seconds")
    unconfirmed.length = 0
    for (let i = 0; i < 100; i++) {
      yield* background(run(Effect.scoped(Lock.scoped(`b:${20 + (i % 10)}`))))
      if (i % 2 === 0) yield* background(Scope.close(scopes.pop() ?? (yield* Scope.make()), Exit.void))
      yield* TestClock.adjust(1)
    }
    const atOthers = unconfirmed.filter((name) => numberOf(name) >= 20)
    // everything ends in virtual time, or the test would not end
    yield* TestClock.adjust("1 minute")
    isSilent = false
    assert.isAtMost(atOthers.length, 20, "at most two for each slot: none was awaited when the first one gave up")
  }).pipe(Effect.provide(noting(unconfirmed)))
})

/** A cluster whose slots fall silent from the lowest on, one lock of which is held in a scope of its own. */
const clusterFallingSilent = Effect.gen(function* () {
  let silentBelow = 0
  const store = clusterWith((yield* testStore()).store, (slot) => slot < silentBelow)
  const run = as(yield* clientOf({ store }, { releaseTimeout: "5 seconds", watchdogLeaseTime: "5 minutes" }))
  const [first, others] = [yield* Scope.make(), yield* Scope.make()]
  yield* background(run(Scope.provide(Lock.scoped("a:0"), first)))
  return { first, others, run, silence: (below: number) => void (silentBelow = below) }
})

const closesInTime = Effect.fnUntraced(function* (scope: Scope.Closeable) {
  const closing = yield* background(Scope.close(scope, Exit.void))
  yield* TestClock.adjust("5.1 seconds")
  const isClosed = closing.pollUnsafe() !== undefined
  yield* TestClock.adjust("2 minutes")
  assert.isTrue(isClosed)
})

it.effect("A cluster that falls silent server by server holds up a scope for no more than one release timeout", () => {
  const unconfirmed: Array<string> = []
  return Effect.gen(function* () {
    const { first, others, run, silence } = yield* clusterFallingSilent
    for (let i = 20; i < 30; i++) yield* background(run(Scope.provide(Lock.scoped(`a:${i}`), others)))
    yield* TestClock.adjust("1 second")
    silence(20)
    yield* background(Scope.close(first, Exit.void))
    yield* TestClock.adjust("5 seconds")
    for (let i = 20; i < 30; i++) yield* background(run(Effect.scoped(Lock.scoped(`b:${i}`))))
    yield* TestClock.adjust(10 * roundTripMillis)
    silence(30)
    yield* closesInTime(others)
  }).pipe(Effect.provide(noting(unconfirmed)))
})

it.effect("A cluster that falls silent once more holds up a scope for no more than one release timeout", () => {
  const unconfirmed: Array<string> = []
  return Effect.gen(function* () {
    const { first, others, run, silence } = yield* clusterFallingSilent
    // the last one is released first
    for (const slot of [20, 21, 22, 1]) {
      yield* background(run(Scope.provide(Lock.scoped(`a:${slot}`), others)))
      yield* TestClock.adjust(roundTripMillis)
    }
    silence(20)
    yield* background(Scope.close(first, Exit.void))
    yield* TestClock.adjust("5 seconds")
    for (const slot of [20, 21, 22]) yield* background(run(Effect.scoped(Lock.scoped(`b:${slot}`))))
    yield* TestClock.adjust(10 * roundTripMillis)
    silence(0)
    yield* background(run(Effect.scoped(Lock.scoped("b:0"))))
    yield* TestClock.adjust(10 * roundTripMillis)
    assert.deepStrictEqual(unconfirmed, ["a:0"])
    silence(30)
    yield* closesInTime(others)
  }).pipe(Effect.provide(noting(unconfirmed)))
})

/** What a program holds beside locks at a silent server, whose releases answer. */
const besides = {
  "locks at other servers of the cluster": (i: number) => Lock.scoped(`b:${20 + i}`),
  RedLocks: (i: number, other: Service) =>
    Lock.scoped(
      RedLock.make([
        Lock.make(`c:${i % 20}`),
        Lock.provide(Lock.make(`d:${i}`), other),
        Lock.provide(Lock.make(`e:${i}`), other)
      ])
    )
}
for (const [title, beside] of Object.entries(besides)) {
  it.effect(
    `A program that holds 20 locks at a silent server, and ${title} in between, ends within one release timeout`,
    () => {
      const unconfirmed: Array<string> = []
      return Effect.gen(function* () {
        let isSilent = false
        const store = clusterWith((yield* testStore()).store, (slot) => isSilent && slot < 20)
        const other = yield* clientOf(yield* testStore())
        const clients = yield* Scope.make()
        const layer = clientLayer(store, { releaseTimeout: "5 seconds", watchdogLeaseTime: "5 minutes" })
        const service = Context.get(yield* Layer.buildWithScope(Layer.fresh(layer), clients), RedisLock.RedisLock)
        const program = Effect.forEach(
          Array.from({ length: 20 }, (_, i) => i),
          (i) =>
            Effect.andThen(
              Effect.andThen(
                Lock.scoped(`a:${i}`),
                Effect.addFinalizer(() => Effect.sleep(2 * roundTripMillis))
              ),
              beside(i, other)
            ),
          { discard: true }
        )
        const running = yield* background(Effect.scoped(Effect.andThen(as(service)(program), Effect.never)))
        yield* TestClock.adjust("2 seconds")
        assert.isUndefined(running.pollUnsafe())
        isSilent = true
        const begun = yield* Clock.currentTimeMillis
        const ending = yield* Fiber.interrupt(running).pipe(
          Effect.andThen(Scope.close(clients, Exit.void)),
          Effect.andThen(Clock.currentTimeMillis),
          background
        )
        // closing takes a moment of real time, and of the test's time what the other servers need to reply
        yield* TestClock.adjust("6 seconds")
        for (let i = 0; i < 20 && ending.pollUnsafe() === undefined; i++) {
          yield* TestClock.adjust(roundTripMillis)
          yield* TestClock.withLive(Effect.sleep(5))
        }
        yield* TestClock.adjust("10 minutes")
        assert.isAtMost((yield* Fiber.join(ending)) - begun, 6200)
        assert.isAbove(unconfirmed.length, 0)
      }).pipe(Effect.provide(noting(unconfirmed)))
    }
  )
}

it.effect(
  "A scope that closes at a silent server, and is outlived by re-entries, ends within one release timeout",
  () => {
    const unconfirmed: Array<string> = []
    return Effect.gen(function* () {
      const server = yield* testStore()
      const run = as(yield* clientOf({ store: patient(server.store) }, { releaseTimeout: "5 seconds" }))
      const [outer, inner] = [yield* Scope.make(), yield* Scope.make()]
      for (let i = 0; i < 20; i++) {
        yield* run(Scope.provide(Lock.scoped(`a:${i}`), inner))
        yield* run(Scope.provide(Lock.scoped(`a:${i}`), outer))
      }
      server.delay = () => 600_000
      const closing = yield* background(Scope.close(inner, Exit.void))
      yield* TestClock.adjust("6 seconds")
      const isClosed = closing.pollUnsafe() !== undefined
      server.delay = () => roundTripMillis
      yield* TestClock.adjust("10 minutes")
      assert.isTrue(isClosed)
      yield* background(Scope.close(outer, Exit.void))
      yield* TestClock.adjust("10 minutes")
    }).pipe(Effect.provide(noting(unconfirmed)))
  }
)

it.effect("A section that is outlived, and then is not, ends within one release timeout at a silent server", () => {
  const unconfirmed: Array<string> = []
  return Effect.gen(function* () {
    const server = yield* testStore()
    const run = as(yield* clientOf({ store: patient(server.store) }, { releaseTimeout: "5 seconds" }))
    const [outer, inner] = [yield* Scope.make(), yield* Scope.make()]
    yield* run(Scope.provide(Lock.scoped("a:0"), outer))
    yield* run(Scope.provide(Lock.scoped("a:0"), inner))
    server.delay = () => 600_000
    const closing = yield* background(Scope.close(outer, Exit.void))
    yield* TestClock.adjust("1 second")
    yield* background(Scope.close(inner, Exit.void))
    yield* TestClock.adjust("4.1 seconds")
    const isClosed = closing.pollUnsafe() !== undefined
    server.delay = () => roundTripMillis
    yield* TestClock.adjust("20 minutes")
    assert.isTrue(isClosed)
  }).pipe(Effect.provide(noting(unconfirmed)))
})

it.effect("A section that is outlived while Redis refuses shortens no release after it", () => {
  const unconfirmed: Array<string> = []
  return Effect.gen(function* () {
    const server = yield* testStore()
    const run = as(yield* clientOf(server))
    const scopes = [yield* Scope.make(), yield* Scope.make(), yield* Scope.make()] as const
    yield* run(Scope.provide(Lock.scoped("a:0"), scopes[0]))
    yield* run(Scope.provide(Lock.scoped("a:0"), scopes[1]))
    yield* run(Scope.provide(Lock.scoped("a:1"), scopes[2]))
    server.isDown = true
    yield* Scope.close(scopes[0], Exit.void)
    const closing = yield* background(Scope.close(scopes[2], Exit.void))
    yield* TestClock.adjust("1 second")
    server.isDown = false
    yield* TestClock.adjust("2 seconds")
    yield* Fiber.join(closing)
    assert.deepStrictEqual(unconfirmed, [])
    assert.isTrue(yield* server.isFree("a:1"))
    yield* Scope.close(scopes[1], Exit.void)
  }).pipe(Effect.provide(noting(unconfirmed)))
})

/** What Redis confirms after a release of the lock "first" has given up. */
const confirmed = {
  "another release": () => Effect.scoped(Lock.scoped("second")),
  "that release, in the background,": ({ isFree }: TestStore) => until("it is confirmed", isFree("first"))
}
for (const [title, confirm] of Object.entries(confirmed)) {
  testLiveQuietly(
    `A client has the whole release timeout to close once ${title} was confirmed after one gave up`,
    function* () {
      const server = yield* testStore()
      const clients = yield* Scope.make()
      const layer = clientLayer(server.store, { releaseTimeout: "1 second" })
      const service = Context.get(yield* Layer.buildWithScope(Layer.fresh(layer), clients), RedisLock.RedisLock)
      const [held, first] = [yield* Scope.make(), yield* Scope.make()]
      yield* as(service)(Scope.provide(Lock.scoped("held"), held))
      yield* as(service)(Scope.provide(Lock.scoped("first"), first))
      server.isDown = true
      yield* Scope.close(first, Exit.void)
      server.isDown = false
      yield* as(service)(confirm(server))
      server.delay = () => 200
      yield* Scope.close(clients, Exit.void)
      assert.isTrue(yield* server.isFree("held"))
    }
  )
}
