import { assert } from "@effect/vitest"
import { Effect, Layer, Option } from "effect"
import { Lock } from "effect-redis-lock"
import { longLease, Site, waiting, withRedisson } from "./harness.ts"
import * as JavaClient from "./JavaClient.ts"
import { freshName } from "../kit/names.ts"

withRedisson("settings", (test) => {
  test("Redisson's NameMapper and our keyPrefix meet under one name", function* () {
    const { locks, nodes, url } = yield* Site
    const name = freshName("interop")
    const java = (yield* JavaClient.start({ address: url, prefix: "shop:" })).thread("thread")
    const ours = yield* Layer.build(locks({ keyPrefix: "shop:" }))
    yield* java.run("lock", name, "acquire", { lease: longLease })
    assert.strictEqual(yield* Effect.promise(() => nodes[0]!.exists(`shop:${name}`)), 1)
    assert.isTrue(Option.isNone(yield* Effect.provideContext(Effect.scoped(Lock.tryScoped(name)), ours)))
    const turn = yield* waiting(name, Effect.provideContext(Lock.withLock(Effect.succeed("in"), name), ours))
    yield* java.run("lock", name, "release")
    assert.strictEqual(yield* turn, "in")
  })

  test("a multi-lock in Java is a lock of each of its members", function* () {
    const { java } = yield* Site
    const names = [freshName("interop"), freshName("interop")] as const
    const thread = java.thread("thread")
    yield* thread.run("multi", "", "acquire", { names, lease: longLease })
    for (const name of names) assert.isTrue(Option.isNone(yield* Effect.scoped(Lock.tryScoped(name))))
    yield* thread.run("multi", "", "release", { names })
    const holding = yield* Lock.scoped(names[1], { leaseTime: longLease })
    assert.isFalse(yield* thread.run("multi", "", "tryAcquire", { names }))
    assert.isFalse(yield* Lock.isLocked(names[0]), "the first member was given back")
    yield* holding.release
    assert.isTrue(yield* thread.run("multi", "", "tryAcquire", { names }))
    yield* thread.run("multi", "", "release", { names })
  })
})
