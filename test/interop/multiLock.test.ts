import { assert } from "@effect/vitest"
import { Effect, Option, Schedule } from "effect"
import { Lock, MultiLock } from "effect-redis-lock"
import * as Counter from "./Counter.ts"
import { longLease, Site, waiting, withRedisson } from "./harness.ts"
import { freshName } from "../kit/names.ts"

/** Three names, in the order of the alphabet, and what they have in common. */
const threeNames = () => {
  const stem = freshName("interop")
  return { stem, names: [`${stem}:a`, `${stem}:b`, `${stem}:c`] as const }
}

const ours = (names: ReadonlyArray<string>) => MultiLock.make(names.map((name) => Lock.make(name)))

const isDenied = (names: ReadonlyArray<string>) =>
  Effect.map(Effect.scoped(Lock.tryScoped(ours(names))), (holding) => Option.isNone(holding))

/** The client that holds each of the names. */
const holders = (names: ReadonlyArray<string>) =>
  Effect.forEach(names, (name) => Effect.map(Lock.inspect(name), ({ holders }) => holders[0]?.owner.split(":")[0]))

withRedisson("RedissonMultiLock", (test) => {
  test("Java holds all, TypeScript is denied, waits and is woken", function* () {
    const { java } = yield* Site
    const { names, stem } = threeNames()
    const [holder, other] = [java.thread("holder"), java.thread("other")]
    yield* holder.run("multi", "", "acquire", { names, lease: longLease })
    assert.deepStrictEqual(yield* holders(names), [java.id, java.id, java.id])
    assert.isTrue(yield* isDenied(names))
    const turn = yield* waiting(
      stem,
      other.run<boolean>("multi", "", "tryAcquire", { names }).pipe(Lock.withLock(ours(names)))
    )
    yield* holder.run("multi", "", "release", { names })
    assert.isFalse(yield* turn, "Java was let in beside TypeScript")
    assert.deepStrictEqual(yield* holders(names), [undefined, undefined, undefined])
  })

  test("TypeScript holds all, Java is denied, waits and is woken", function* () {
    const { java } = yield* Site
    const { names, stem } = threeNames()
    const waiter = java.thread("waiter")
    const holding = yield* Lock.scoped(ours(names), { leaseTime: longLease })
    assert.isFalse(yield* waiter.run("multi", "", "tryAcquire", { names }))
    const woken = yield* waiting(
      stem,
      waiter.run<boolean>("multi", "", "acquire", { names, wait: longLease, lease: longLease })
    )
    yield* holding.release
    assert.isTrue(yield* woken)
    assert.deepStrictEqual(yield* holders(names), [java.id, java.id, java.id])
    assert.isTrue(yield* isDenied(names))
    yield* waiter.run("multi", "", "release", { names })
    assert.isFalse(yield* isDenied(names))
  })

  for (const [index, which] of ["first", "second", "third"].entries()) {
    test(`the ${which} member, held by Java, keeps TypeScript out, and nothing of ours stays on the others`, function* () {
      const { java } = yield* Site
      const { names } = threeNames()
      const holder = java.thread("holder")
      const taken = names[index]!
      const onlyThat = names.map((name) => (name === taken ? java.id : undefined))
      yield* holder.run("lock", taken, "acquire", { lease: longLease })
      assert.isTrue(yield* isDenied(names))
      assert.deepStrictEqual(yield* holders(names), onlyThat)
      const late = yield* Effect.flip(Lock.withLock(Effect.void, ours(names), { waitTime: 50 }))
      assert.strictEqual(late._tag, "LockTimeout")
      assert.deepStrictEqual(yield* holders(names), onlyThat)

      // nor while it waits, and Java may have them meanwhile; it is subscribed since it was late
      const turn = yield* waiting(taken, Lock.withLock(holders(names), ours(names)), { subscribes: false })
      assert.deepStrictEqual(yield* holders(names), onlyThat)
      const others = { names: names.filter((name) => name !== taken) }
      assert.isTrue(yield* java.thread("other").run("multi", "", "tryAcquire", others))
      yield* java.thread("other").run("multi", "", "release", others)
      yield* holder.run("lock", taken, "release")
      const inside = yield* turn
      assert.isTrue(inside.every((client) => client !== undefined && client !== java.id && client === inside[0]))
    })

    test(`the ${which} member, held by TypeScript, keeps Java out until it is released`, function* () {
      const { java } = yield* Site
      const { names } = threeNames()
      const waiter = java.thread("waiter")
      const taken = names[index]!
      const holding = yield* Lock.scoped(taken, { leaseTime: longLease })
      assert.isFalse(yield* waiter.run("multi", "", "tryAcquire", { names }))
      const left = yield* holders(names)
      assert.strictEqual(left.filter((client) => client !== undefined).length, 1)
      const woken = yield* waiting(
        taken,
        waiter.run<boolean>("multi", "", "acquire", { names, wait: longLease, lease: longLease })
      )
      yield* holding.release
      assert.isTrue(yield* woken)
      yield* waiter.run("multi", "", "release", { names })
    })
  }

  for (const [orders, reverse] of [
    ["Java in the order of the alphabet, TypeScript against it", false],
    ["TypeScript in the order of the alphabet, Java against it", true]
  ] as const) {
    test(`both contend in opposite orders, and no increment is lost: ${orders}`, function* () {
      const { java } = yield* Site
      const { names } = threeNames()
      const [forJava, forUs] = reverse ? [names.toReversed(), names] : [names, names.toReversed()]
      const counter = yield* Counter.make
      yield* Effect.all(
        [
          java.thread("one").run("multi", "", "count", { names: forJava, port: counter.port, times: 30 }),
          Effect.repeat(Lock.withLock(counter.increment, ours(forUs)), Schedule.recurs(29))
        ],
        { concurrency: "unbounded", discard: true }
      )
      assert.strictEqual(counter.value(), 60)
      assert.deepStrictEqual(yield* holders(names), [undefined, undefined, undefined])
    })
  }
})
