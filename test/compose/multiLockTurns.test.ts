/**
 * How long a lock of several waits while others use its members without a pause, how it leaves them to others, and that locks of several
 * never wait for each other for ever, on memory and on Redis.
 */
import { assert, it } from "@effect/vitest"
import { Arbitrary, type Duration, Effect, Fiber, Schema, type Scope } from "effect"
import { Lock, LockStore, MultiLock, type RedisLock } from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { soon } from "../kit/eventually.ts"
import { freshName } from "../kit/names.ts"
import { onRedis } from "../kit/stores.ts"
import { typeOfKeyIn } from "../kit/storeOperations.ts"
import { as, clientOf, storeOf } from "../kit/testStore.ts"
import type { Store } from "../kit/wrappedStore.ts"
import { test } from "../kit/test.ts"

type AnyLock = Lock.Lock<RedisLock.RedisLock, any, any>

/** Where the locks are, and how its time passes. */
interface Place {
  readonly store: Store
  /** How long a section lasts, milliseconds. */
  readonly sectionMillis: number
  /** Waits until a fiber has ended, or reports that it has not. */
  readonly ended: <A, E>(title: string, fiber: Fiber.Fiber<A, E>, patienceMillis?: number) => Effect.Effect<A, E>
}

/** Passes the time of the test's clock until a fiber has ended. */
const endedInVirtualTime = Effect.fnUntraced(function* <A, E>(
  title: string,
  fiber: Fiber.Fiber<A, E>,
  patienceMillis = 60_000,
  stepMillis = 50
) {
  for (let passed = 0; fiber.pollUnsafe() === undefined; passed += stepMillis) {
    if (passed > patienceMillis) assert.fail(`${title}: not within ${patienceMillis} ms`)
    yield* TestClock.adjust(stepMillis)
  }
  return yield* Fiber.join(fiber)
})

const onEach = (
  title: string,
  body: (place: Place, names: readonly [string, string]) => Effect.Effect<unknown, unknown, Scope.Scope>
) => {
  const names = () => {
    const name = freshName("turns")
    return [`${name}:a`, `${name}:b`] as const
  }
  test(`memory: ${title}`, function* () {
    const store = yield* storeOf(LockStore.layerMemory)
    yield* body({ store, sectionMillis: 600, ended: endedInVirtualTime }, names())
  })
  it.live(`Redis: ${title}`, () =>
    Effect.gen(function* () {
      const store = yield* LockStore.LockStore
      const ended: Place["ended"] = (title, fiber) => soon(title, Fiber.join(fiber))
      yield* body({ store, sectionMillis: 20, ended }, names())
    }).pipe(Effect.scoped, Effect.provide(onRedis))
  )
}

/** Sections under some locks, which are counted. */
const counting = (millis: number) => {
  const sections = new Map<AnyLock, number>()
  const count = (lock: AnyLock) => sections.get(lock) ?? 0
  const use = (lock: AnyLock): Effect.Effect<void, any, RedisLock.RedisLock> =>
    Effect.suspend(() => {
      sections.set(lock, count(lock) + 1)
      return Effect.sleep(millis)
    }).pipe(Lock.withLock(lock))
  return { count, use }
}

/** How many sections of each of two members come between the request for both and its grant, while some clients use each without a pause. */
const sectionsBetween = Effect.fnUntraced(function* (
  place: Place,
  names: readonly [string, string],
  {
    options,
    own,
    users = 5
  }: {
    readonly options?: Lock.AcquireOptions
    readonly own?: { readonly leaseTime: Duration.Input }
    readonly users?: number
  } = {}
) {
  const { count, use } = counting(place.sectionMillis)
  const [a, b] = [Lock.make(names[0]), Lock.make(names[1])]
  for (let user = 0; user < users; user++) {
    const service = yield* clientOf(place)
    for (const lock of [a, b]) {
      yield* Effect.forkScoped(as(service)(Effect.forever(use(lock))), { startImmediately: true })
    }
  }
  const isBusy = Effect.repeat(Effect.sleep(place.sectionMillis), { while: () => count(b) < 5 })
  yield* place.ended("the members are in use", yield* Effect.forkScoped(isBusy))
  const before = [count(a), count(b)] as const
  const between = Effect.sync(() => [count(a) - before[0], count(b) - before[1]] as const)
  const waiting = yield* between.pipe(
    Lock.withLock(MultiLock.make(names.map((name) => Lock.make(name, own))), options),
    as(yield* clientOf(place)),
    Effect.forkScoped({ startImmediately: true })
  )
  return yield* place.ended("the lock of several is held", waiting)
})

onEach("a lock of several is held after a few turns of each member that others use without a pause", (place, names) =>
  Effect.gen(function* () {
    for (const sections of yield* sectionsBetween(place, names)) assert.isAtMost(sections, 6 * 5)
  })
)

test("memory: a lock of several is held in the end, however long the turns of those that use its members last", function* () {
  const store = yield* storeOf(LockStore.layerMemory)
  const ended: Place["ended"] = (title, fiber) => endedInVirtualTime(title, fiber, 7_200_000, 1000)
  const between = yield* sectionsBetween({ store, sectionMillis: 20_000, ended }, ["a", "b"], { users: 2 })
  for (const sections of between) assert.isAtMost(sections, 150)
})

test("memory: locks of several with the same members in different orders follow each other without a pause", function* () {
  const store = yield* storeOf(LockStore.layerMemory)
  const orders = [
    ["a", "b", "c"],
    ["c", "b", "a"],
    ["b", "c", "a"]
  ].flatMap((names) => [names, names])
  const fibers = yield* Effect.forEach(orders, (names) =>
    Effect.flatMap(clientOf({ store }), (service) =>
      Effect.sleep(300).pipe(
        Lock.withLock(MultiLock.make(names)),
        Effect.repeat({ times: 4 }),
        as(service),
        Effect.forkScoped({ startImmediately: true })
      )
    )
  )
  const all = yield* Effect.forkScoped(Effect.forEach(fibers, (fiber) => Fiber.join(fiber)))
  yield* endedInVirtualTime("all sections, one after the other", all, orders.length * 5 * 300 + 600)
})

for (const whose of ["its", "their own"]) {
  test(`memory: members that a lock of several keeps while it waits for the next outlive ${whose} fixed lease`, function* () {
    const store = yield* storeOf(LockStore.layerMemory)
    const place = { store, sectionMillis: 600, ended: endedInVirtualTime }
    const lease = { leaseTime: "700 millis" } as const
    const terms = whose === "its" ? { options: lease } : { own: lease }
    const between = yield* sectionsBetween(place, ["a", "b"], terms)
    for (const sections of between) assert.isAtMost(sections, 6 * 5)
  })
}

test("memory: a lock of several that is interrupted at any time of its wait leaves no member taken, and no place", function* () {
  for (let passed = 0; passed <= 6000; passed += 200) {
    const store = yield* storeOf(LockStore.layerMemory)
    const hold = Effect.fnUntraced(function* (name: string, millis: number) {
      const use = as(yield* clientOf({ store }))
      return yield* Effect.forkScoped(use(Lock.withLock(Effect.sleep(millis), name)), { startImmediately: true })
    })
    // it has a after 1 second, keeps it for another, and has a and b, but not c, after 4 seconds
    const holders = [yield* hold("a", 1000), yield* hold("b", 4000), yield* hold("c", 6500)]
    yield* TestClock.adjust(1)
    const waiting = yield* Effect.void.pipe(
      Lock.withLock(MultiLock.make(["c", "b", "a"])),
      as(yield* clientOf({ store })),
      Effect.forkScoped({ startImmediately: true })
    )
    yield* TestClock.adjust(passed)
    assert.isUndefined(waiting.pollUnsafe())
    yield* endedInVirtualTime("the interruption", yield* Effect.forkScoped(Fiber.interrupt(waiting)))
    for (const holder of holders) yield* endedInVirtualTime("the holder", holder, 7000)
    const after = as(yield* clientOf({ store }))
    for (const name of ["a", "b", "c"]) {
      assert.isFalse(yield* after(Lock.isLocked(name)), `${name}, interrupted after ${passed} ms`)
      assert.strictEqual(
        yield* typeOfKeyIn(store, `effect_redis_lock_places:{${name}}`),
        "none",
        `interrupted after ${passed} ms`
      )
    }
  }
})

onEach(
  "a lock of several leaves a member to another client after as many sections as a plain lock does",
  (place, names) =>
    Effect.gen(function* () {
      const { count, use } = counting(place.sectionMillis)
      const both = MultiLock.make([Lock.make(names[0]), Lock.make(names[1])])
      const busy = as(yield* clientOf(place))
      for (const _ of [1, 2, 3, 4])
        yield* Effect.forkScoped(busy(Effect.forever(use(both))), { startImmediately: true })
      const other = as(yield* clientOf(place))
      for (let i = 0; i < 5; i++) {
        const isBusy = Effect.suspend(() => {
          const goal = count(both) + 3
          return Effect.repeat(Effect.sleep(place.sectionMillis), { while: () => count(both) < goal })
        })
        yield* place.ended("the lock of several is in use", yield* Effect.forkScoped(isBusy))
        const before = count(both)
        const between = Effect.sync(() => count(both) - before)
        const waiting = yield* between.pipe(
          Lock.withLock(names[i % 2]!),
          other,
          Effect.forkScoped({ startImmediately: true })
        )
        assert.isAtMost(yield* place.ended("the other client has the member", waiting), 10)
      }
    })
)

const members = ["a", "b", "c", "d"] as const

const Scenario = Arbitrary.array(
  Arbitrary.schema(
    Schema.Struct({
      how: Schema.Literals(["plain", "several", "several", "nested"]),
      /** The members that it wants, in its own order. */
      wants: Schema.NonEmptyArray(Schema.Literals(members)),
      sectionMillis: Schema.Literals([0, 10, 300, 700, 2500]),
      isLoop: Schema.Boolean
    })
  ),
  { minLength: 3, maxLength: 9 }
)

it.effect.prop(
  "locks of several in any order, plain locks and nested sections that share members all have their turn, one at a time",
  [Scenario],
  ([actors]) =>
    Effect.gen(function* () {
      const store = yield* storeOf(LockStore.layerMemory)
      const inside = new Map<string, number>()
      const change = (names: ReadonlyArray<string>, by: number) =>
        Effect.sync(() => {
          for (const name of names) {
            inside.set(name, (inside.get(name) ?? 0) + by)
            assert.isAtMost(inside.get(name)!, 1, `in ${name}`)
          }
        })
      const section = ({ how, sectionMillis, wants }: (typeof actors)[number]) => {
        const names = how === "plain" ? wants.slice(0, 1) : [...new Set(wants)]
        const body = Effect.sleep(sectionMillis).pipe(Effect.andThen(change(names, -1)), (rest) =>
          Effect.andThen(change(names, 1), rest)
        )
        // nested against the order in which a lock of several acquires its members; in one order, or they would deadlock themselves
        return how === "nested"
          ? names
              .toSorted()
              .reduce(
                (inner, name) => Lock.withLock(inner, name),
                body as Effect.Effect<void, any, RedisLock.RedisLock>
              )
          : Lock.withLock(body, MultiLock.make(names.map((name) => Lock.make(name))))
      }
      const fibers = yield* Effect.forEach(actors, (actor) =>
        Effect.flatMap(clientOf({ store }), (service) =>
          Effect.forkScoped(as(service)(Effect.repeat(section(actor), { times: actor.isLoop ? 9 : 0 })), {
            startImmediately: true
          })
        )
      )
      for (const [i, fiber] of fibers.entries()) {
        yield* endedInVirtualTime(`${JSON.stringify(actors[i])} among ${JSON.stringify(actors)}`, fiber, 600_000)
      }
    }).pipe(Effect.scoped),
  { arbitrary: { runs: 60, size: 9 } }
)
