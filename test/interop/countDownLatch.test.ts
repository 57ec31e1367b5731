import { assert } from "@effect/vitest"
import { CountDownLatch } from "effect-redis-lock"
import { bracedName, longLease, Site, waiting, withRedisson } from "./harness.ts"
import { freshName } from "../kit/names.ts"

withRedisson("RCountDownLatch", (test) => {
  for (const [names, newName] of [
    ["", freshName],
    [", the name has braces", bracedName]
  ] as const) {
    test(`counted down by both, awaited by both${names}`, function* () {
      const { java } = yield* Site
      const name = newName()
      const thread = java.thread("thread")
      assert.isTrue(yield* thread.run("latch", name, "setCount", { count: 2 }))
      assert.isFalse(yield* CountDownLatch.trySetCount(name, 7))
      const ours = yield* waiting(name, CountDownLatch.await(name), { attempts: 0 })
      const javas = yield* waiting(
        name,
        java.thread("waiter").run<boolean>("latch", name, "await", { wait: longLease }),
        { attempts: 0 }
      )
      yield* CountDownLatch.countDown(name)
      assert.strictEqual(yield* thread.run("latch", name, "getCount"), 1)
      yield* thread.run("latch", name, "countDown")
      yield* ours
      assert.isTrue(yield* javas)
      assert.strictEqual(yield* CountDownLatch.count(name), 0)
    })

    test(`set and counted down in TypeScript, awaited in Java${names}`, function* () {
      const { java } = yield* Site
      const name = newName()
      assert.isTrue(yield* CountDownLatch.trySetCount(name, 1))
      const javas = yield* waiting(
        name,
        java.thread("waiter").run<boolean>("latch", name, "await", { wait: longLease }),
        { attempts: 0 }
      )
      yield* CountDownLatch.countDown(name)
      assert.isTrue(yield* javas)
    })
  }

  test("a latch that TypeScript deletes lets a waiting Java client go on", function* () {
    const { java } = yield* Site
    const name = freshName("interop")
    yield* CountDownLatch.trySetCount(name, 5)
    const javas = yield* waiting(
      name,
      java.thread("waiter").run<boolean>("latch", name, "await", { wait: longLease }),
      { attempts: 0 }
    )
    assert.isTrue(yield* CountDownLatch.delete(name))
    assert.isTrue(yield* javas)
  })
})
