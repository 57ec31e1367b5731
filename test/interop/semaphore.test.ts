import { assert } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Schedule } from "effect"
import { Semaphore } from "effect-redis-lock"
import * as Counter from "./Counter.ts"
import { bracedName, longLease, Site, waiting, withRedisson } from "./harness.ts"
import { until } from "../kit/eventually.ts"
import { freshName } from "../kit/names.ts"

withRedisson("RSemaphore", (test) => {
  for (const [names, newName] of [
    ["", freshName],
    [", the name has braces", bracedName]
  ] as const) {
    test(`Java has the permits, TypeScript waits and is woken${names}`, function* () {
      const { java } = yield* Site
      const name = newName()
      const thread = java.thread("thread")
      assert.isTrue(yield* thread.run("semaphore", name, "setPermits", { permits: 2 }))
      yield* thread.run("semaphore", name, "acquire", { permits: 2 })
      const waiter = yield* waiting(name, Semaphore.withPermits(Effect.succeed("in"), name, 2))
      yield* thread.run("semaphore", name, "release", { permits: 2 })
      assert.strictEqual(yield* waiter, "in")
      assert.strictEqual(yield* thread.run("semaphore", name, "available"), 2)
    })

    test(`TypeScript has the permits, Java waits and is woken${names}`, function* () {
      const { java } = yield* Site
      const name = newName()
      const thread = java.thread("thread")
      const semaphore = Semaphore.make(name, { permits: 2 })
      yield* Semaphore.acquire(semaphore, 2)
      assert.strictEqual(yield* thread.run("semaphore", name, "available"), 0)
      const waiter = yield* waiting(
        name,
        thread.run<boolean>("semaphore", name, "acquire", { permits: 2, wait: longLease })
      )
      yield* Semaphore.release(semaphore, 2)
      assert.isTrue(yield* waiter)
      assert.strictEqual(yield* Semaphore.availablePermits(semaphore), 0)
    })
  }

  test("Each language gives back permits that the other has taken", function* () {
    const { java } = yield* Site
    const name = freshName("interop")
    const thread = java.thread("thread")
    yield* Semaphore.trySetPermits(name, 3)
    assert.isFalse(yield* thread.run("semaphore", name, "setPermits", { permits: 9 }))
    yield* thread.run("semaphore", name, "acquire", { permits: 3 })
    yield* Semaphore.release(name, 2)
    assert.strictEqual(yield* thread.run("semaphore", name, "available"), 2)
    assert.isTrue(yield* Semaphore.tryAcquire(name, 2))
    yield* thread.run("semaphore", name, "release", { permits: 3 })
    assert.strictEqual(yield* Semaphore.availablePermits(name), 3)
  })

  test("TypeScript and Java contend for one permit, and no increment is lost", function* () {
    const { java } = yield* Site
    const name = freshName("interop")
    const counter = yield* Counter.make
    yield* Semaphore.trySetPermits(name, 1)
    const javas = ["one", "two"].map((thread) =>
      java.thread(thread).run("semaphore", name, "count", { port: counter.port, times: 100 })
    )
    const us = Effect.repeat(Semaphore.withPermits(counter.increment, name, 1), Schedule.recurs(99))
    yield* Effect.all([...javas, us, us], { concurrency: "unbounded", discard: true })
    assert.strictEqual(counter.value(), 400)
    assert.strictEqual(yield* Semaphore.availablePermits(name), 1)
  })

  test("Java has its turn among clients of ours that contend without a pause, and leaves theirs to them", function* () {
    const { java, locks } = yield* Site
    const name = freshName("interop")
    yield* Semaphore.trySetPermits(name, 1)
    const sections = [0, 0, 0]
    const isOver = Deferred.makeUnsafe<void>()
    const clients = yield* Effect.forEach([0, 1, 2], (i) =>
      Effect.sync(() => void sections[i]!++).pipe(
        Semaphore.withPermits(name, 1),
        Effect.repeat({ until: () => Deferred.isDone(isOver) }),
        Effect.provide(Layer.fresh(locks())),
        Effect.forkChild
      )
    )
    const thread = java.thread("thread")
    for (let turn = 0; turn < 20; turn++) {
      assert.isTrue(yield* thread.run("semaphore", name, "acquire", { permits: 1, wait: longLease }))
      const before = [...sections]
      yield* thread.run("semaphore", name, "release", { permits: 1 })
      // nobody of ours asks by the clock
      yield* until("each of ours goes on", () => sections.every((count, i) => count > before[i]!))
    }
    yield* Deferred.succeed(isOver, undefined)
    yield* Effect.forEach(clients, Fiber.join)
    assert.strictEqual(yield* Semaphore.availablePermits(name), 1)
  })
})
