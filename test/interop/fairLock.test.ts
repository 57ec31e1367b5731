import { assert } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { FairLock, Lock } from "effect-redis-lock"
import { longLease, Site, soon, waiting, withRedisson } from "./harness.ts"
import { lockSuite } from "./lockSuite.ts"
import { freshName } from "../kit/names.ts"

lockSuite("RFairLock")

withRedisson("RFairLock, the queue", (test) => {
  /** Queues up Java and TypeScript in turn behind a holder, and lets them come: who came when. */
  const order = Effect.fnUntraced(function* (javas: ReadonlyArray<string>, wait?: number) {
    const { java, nodes } = yield* Site
    const name = freshName("interop")
    const came: Array<string> = []
    const holding = yield* Lock.scoped(FairLock.make(name), { leaseTime: longLease })
    const waiters: Array<Effect.Effect<void, unknown>> = []
    for (const [index, label] of javas.entries()) {
      const thread = java.thread(`${label} of ${name}`)
      const javaTurn = Effect.gen(function* () {
        assert.isTrue(yield* thread.run<boolean>("fair", name, "acquire", { lease: longLease, ...(wait && { wait }) }))
        came.push(`Java ${label}`)
        yield* thread.run("fair", name, "release")
      })
      waiters.push(yield* waiting(name, javaTurn))
      const ourTurn = Lock.withLock(
        Effect.sync(() => came.push(`TypeScript ${label}`)),
        FairLock.make(name)
      )
      const place = yield* Effect.forkScoped(ourTurn)
      const queued = 2 * (index + 1)
      yield* soon(
        `${queued} wait`,
        Effect.repeat(
          Effect.promise(() => nodes[0]!.llen(`redisson_lock_queue:{${name}}`)),
          { until: (n) => n === queued }
        )
      )
      waiters.push(Effect.asVoid(Fiber.join(place)))
    }
    yield* holding.release
    yield* soon("everybody comes", Effect.all(waiters, { discard: true }))
    assert.strictEqual(
      yield* Effect.promise(() =>
        nodes[0]!.exists(name, `redisson_lock_queue:{${name}}`, `redisson_lock_timeout:{${name}}`)
      ),
      0
    )
    return came
  })

  const labels = ["1", "2", "3", "4"]
  const inTurn = labels.flatMap((label) => [`Java ${label}`, `TypeScript ${label}`])

  test("Waiters for a fair lock are served in the order of their arrival, whatever their language", function* () {
    assert.deepStrictEqual(yield* order(labels), inTurn)
  })

  test("Waiters for a fair lock are served in the order of their arrival also if the Java clients wait for a limited time", function* () {
    assert.deepStrictEqual(yield* order(labels, longLease), inTurn)
  })

  test("a TypeScript waiter that gives up leaves no gap between Java clients", function* () {
    const { java, nodes } = yield* Site
    const name = freshName("interop")
    const [holder, next] = [java.thread("holder"), java.thread("next")]
    yield* holder.run("fair", name, "acquire", { lease: longLease })
    const place = yield* Effect.forkScoped(Lock.withLock(Effect.void, FairLock.make(name)))
    yield* soon(
      "TypeScript has the first place",
      Effect.repeat(
        Effect.promise(() => nodes[0]!.llen(`redisson_lock_queue:{${name}}`)),
        { until: (n) => n === 1 }
      )
    )
    const turn = yield* waiting(name, next.run<boolean>("fair", name, "acquire", { lease: longLease }))
    yield* Fiber.interrupt(place)
    assert.strictEqual(yield* Effect.promise(() => nodes[0]!.llen(`redisson_lock_queue:{${name}}`)), 1)
    yield* holder.run("fair", name, "release")
    assert.isTrue(yield* turn)
    yield* next.run("fair", name, "release")
  })

  test("a Java waiter that gives up leaves no gap between TypeScript clients", function* () {
    const { java, nodes } = yield* Site
    const name = freshName("interop")
    const waiter = java.thread("waiter")
    const holding = yield* Lock.scoped(FairLock.make(name), { leaseTime: longLease })
    const attempt = yield* waiting(name, waiter.run<boolean>("fair", name, "acquire", { wait: 1000 }))
    const place = yield* Effect.forkScoped(Lock.withLock(Effect.succeed("in"), FairLock.make(name)))
    assert.isFalse(yield* attempt)
    yield* soon(
      "only TypeScript waits",
      Effect.repeat(
        Effect.promise(() => nodes[0]!.llen(`redisson_lock_queue:{${name}}`)),
        { until: (n) => n === 1 }
      )
    )
    yield* holding.release
    assert.strictEqual(yield* soon("TypeScript comes", Fiber.join(place)), "in")
  })
})
