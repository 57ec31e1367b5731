import { assert } from "@effect/vitest"
import { Effect, Option, Schedule } from "effect"
import { PermitId, PermitSemaphore } from "effect-redis-lock"
import * as Counter from "./Counter.ts"
import { bracedName, eventually, longLease, Site, waiting, watchdogLease, withRedisson } from "./harness.ts"
import * as JavaClient from "./JavaClient.ts"
import { freshName } from "../kit/names.ts"

withRedisson("RPermitExpirableSemaphore", (test) => {
  for (const [names, newName] of [
    ["", freshName],
    [", the name has braces", bracedName]
  ] as const) {
    test(`Java has the permit, TypeScript waits and is woken${names}`, function* () {
      const { java } = yield* Site
      const name = newName()
      const thread = java.thread("thread")
      assert.isTrue(yield* thread.run("permit", name, "setPermits", { permits: 1 }))
      const permitId = yield* thread.run<string>("permit", name, "acquire", { lease: longLease })
      const waiter = yield* waiting(name, PermitSemaphore.withPermit(Effect.succeed("in"), name))
      assert.isTrue(yield* thread.run("permit", name, "release", { permitId }))
      assert.strictEqual(yield* waiter, "in")
      assert.strictEqual(yield* thread.run("permit", name, "available"), 1)
    })

    test(`TypeScript has the permit, Java waits and is woken${names}`, function* () {
      const { java } = yield* Site
      const name = newName()
      const thread = java.thread("thread")
      const permit = yield* PermitSemaphore.scoped(PermitSemaphore.make(name, { permits: 1 }), {
        leaseTime: longLease
      })
      assert.strictEqual(yield* thread.run("permit", name, "available"), 0)
      assert.strictEqual(yield* thread.run("permit", name, "acquired"), 1)
      const waiter = yield* waiting(
        name,
        thread.run<string | null>("permit", name, "acquire", { wait: longLease, lease: longLease })
      )
      yield* permit.release
      const permitId = yield* waiter
      assert.match(permitId ?? "none", /^[0-9a-f]{32}$/)
      assert.isTrue(yield* PermitId.tryRelease(name, [permitId!]), "an id of Java's")
      assert.strictEqual(yield* PermitSemaphore.availablePermits(name), 1)
    })
  }

  test("Java releases an id of ours, and sees its lease", function* () {
    const { java } = yield* Site
    const name = freshName("interop")
    const thread = java.thread("thread")
    const permit = yield* PermitSemaphore.scoped(PermitSemaphore.make(name, { permits: 1 }), { leaseTime: longLease })
    const permitId = permit.ids[0]!
    const left = yield* thread.run<number>("permit", name, "leaseTime", { permitId })
    assert.isTrue(left > 0 && left <= longLease, `${left} ms left`)
    assert.isTrue(yield* thread.run("permit", name, "release", { permitId }))
    assert.isFalse(yield* thread.run("permit", name, "release", { permitId }))
    assert.strictEqual(yield* PermitSemaphore.availablePermits(name), 1)
    assert.strictEqual((yield* Effect.flip(permit.release))._tag, "LockLost")
  })

  test("TypeScript and Java contend for one leased permit, and no increment is lost", function* () {
    const { java } = yield* Site
    const name = freshName("interop")
    const counter = yield* Counter.make
    yield* PermitSemaphore.trySetPermits(name, 1)
    const javas = ["one", "two"].map((thread) =>
      java.thread(thread).run("permit", name, "count", { port: counter.port, times: 100 })
    )
    const us = Effect.repeat(PermitSemaphore.withPermit(counter.increment, name), Schedule.recurs(99))
    yield* Effect.all([...javas, us, us], { concurrency: "unbounded", discard: true })
    assert.strictEqual(counter.value(), 400)
    assert.strictEqual(yield* PermitSemaphore.availablePermits(name), 1)
  })

  test("a renewed permit of ours keeps Java out for longer than a lease", function* () {
    const { java } = yield* Site
    const name = freshName("interop")
    const thread = java.thread("thread")
    const permit = yield* PermitSemaphore.scoped(PermitSemaphore.make(name, { permits: 1 }))
    const until = performance.now() + 1.5 * watchdogLease
    while (performance.now() < until) {
      assert.isNull(yield* thread.run("permit", name, "acquire", { wait: 0, lease: longLease }))
      yield* Effect.sleep(100)
    }
    yield* permit.ensureHeld
  })

  test("the permit of a dead Java client comes back when its lease is over", function* () {
    const { url } = yield* Site
    const name = freshName("interop")
    yield* PermitSemaphore.trySetPermits(name, 1)
    const doomed = yield* JavaClient.start({ address: url })
    yield* doomed.thread("thread").run("permit", name, "acquire", { lease: 2000 })
    yield* doomed.die
    assert.isTrue(Option.isNone(yield* Effect.scoped(PermitSemaphore.tryScoped(name))))
    yield* eventually("the permit is back", Effect.scoped(PermitSemaphore.tryScoped(name)), (permit) =>
      Option.isSome(permit)
    )
  })
})
