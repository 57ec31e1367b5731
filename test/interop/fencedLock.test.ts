import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { FencedLock, Lock } from "effect-redis-lock"
import { Site, withRedisson } from "./harness.ts"
import { lockSuite } from "./lockSuite.ts"
import { freshName } from "../kit/names.ts"

lockSuite("RFencedLock")

withRedisson("RFencedLock, the tokens", (test) => {
  test("Fencing tokens of TypeScript and Java come from one counter", function* () {
    const { java } = yield* Site
    const name = freshName("interop")
    const thread = java.thread("thread")
    const ours = Effect.map(Lock.currentHolding(FencedLock.make(name)), ({ token }) => Number(token)).pipe(
      Lock.withLock(FencedLock.make(name))
    )
    const javas = Effect.tap(thread.run<number>("fenced", name, "acquireToken"), () =>
      thread.run("fenced", name, "release")
    )
    assert.deepStrictEqual(yield* Effect.all([javas, ours, ours, javas, javas, ours]), [1, 2, 3, 4, 5, 6])
    assert.strictEqual(yield* thread.run("fenced", name, "token"), 6)
  })
})
