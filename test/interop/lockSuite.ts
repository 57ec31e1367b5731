/**
 * What must hold for every kind of lock, whichever language holds and whichever waits.
 */
import { assert } from "@effect/vitest"
import { Effect, Fiber, Layer, Option, Schedule } from "effect"
import { Lock } from "effect-redis-lock"
import type { Redis } from "ioredis"
import * as Counter from "./Counter.ts"
import {
  bracedName,
  holderProcess,
  longLease,
  Site,
  soon,
  timed,
  waiting,
  watchdogLease,
  withRedisson,
  withRedissonOnCluster
} from "./harness.ts"
import * as JavaClient from "./JavaClient.ts"
import { type LockKind, type LockKindName, lockKinds } from "./lockKinds.ts"
import { freshName } from "../kit/names.ts"

/** On one server, or on a cluster of three nodes. */
export const lockSuite = (kindName: LockKindName, on: "server" | "cluster" = "server"): void =>
  (on === "server" ? withRedisson : withRedissonOnCluster)(kindName, (test) => {
    const { java: kind, notifies, ours, reentrant }: LockKind = lockKinds[kindName]

    /** Waits for who must wait: for his message where there are messages, else for his second attempt. */
    const waits = <A, E, R>(name: string, self: Effect.Effect<A, E, R>) => waiting(name, self, { subscribes: notifies })

    for (const [names, newName] of [
      ["", freshName],
      [", the name has braces", bracedName]
    ] as const) {
      test(`Java holds, TypeScript waits and is woken${names}`, function* () {
        const { java } = yield* Site
        const name = newName()
        const holder = java.thread("holder")
        yield* holder.run(kind, name, "acquire", { lease: longLease })
        const waiter = yield* waits(
          name,
          Lock.withLock(java.thread("other").run<boolean>(kind, name, "isLocked"), ours(name))
        )
        yield* holder.run(kind, name, "release")
        assert.isTrue(yield* waiter)
      })

      test(`TypeScript holds, Java waits and is woken${names}`, function* () {
        const { java } = yield* Site
        const name = newName()
        const waiter = java.thread("waiter")
        const holding = yield* Lock.scoped(ours(name), { leaseTime: longLease })
        const woken = yield* waits(
          name,
          waiter.run<boolean>(kind, name, "acquire", { wait: longLease, lease: longLease })
        )
        yield* holding.release
        assert.isTrue(yield* woken)
        assert.isTrue(Option.isNone(yield* Lock.tryScoped(ours(name))))
        yield* waiter.run(kind, name, "release")
      })
    }

    test("each sees the other's lock: whether, for how long, and that it is not its own", function* () {
      const { java } = yield* Site
      const [javas, typeScripts] = [freshName("interop"), freshName("interop")]
      const holder = java.thread("holder")
      yield* holder.run(kind, javas, "acquire", { lease: longLease })
      if (reentrant) yield* holder.run(kind, javas, "acquire", { lease: longLease })
      const state = yield* Lock.inspect(ours(javas))
      assert.deepStrictEqual(
        state.holders.map(({ holdCount, owner }) => [owner.split(":")[0], holdCount]),
        [[java.id, reentrant ? 2 : 1]]
      )
      assert.isFalse(yield* Lock.isHeldByCurrentOwner(ours(javas)))
      if (reentrant) {
        yield* holder.run(kind, javas, "release")
        assert.isTrue(yield* Lock.isLocked(ours(javas)))
      }
      yield* holder.run(kind, javas, "release")
      assert.isFalse(yield* Lock.isLocked(ours(javas)))

      const holding = yield* Lock.scoped(ours(typeScripts), { leaseTime: longLease })
      assert.isTrue(yield* holder.run(kind, typeScripts, "isLocked"))
      assert.strictEqual(yield* holder.run(kind, typeScripts, "holdCount"), 0)
      const remaining = yield* holder.run<number>(kind, typeScripts, "remaining")
      assert.isTrue(remaining > 0 && remaining <= longLease, `${remaining}`)
      assert.match(
        (yield* Effect.flip(holder.run(kind, typeScripts, "release"))).message,
        /not locked by current thread/
      )
      yield* holding.ensureHeld
      yield* holding.release
      assert.isFalse(yield* holder.run(kind, typeScripts, "isLocked"))
    })

    test("each frees the other's lock by force, and wakes who waits", function* () {
      const { java, locks } = yield* Site
      const [javas, typeScripts] = [freshName("interop"), freshName("interop")]
      const another = yield* Layer.build(locks())
      const [one, two] = [java.thread("one"), java.thread("two")]
      yield* one.run(kind, javas, "acquire", { lease: longLease })
      const third = yield* waits(javas, two.run<boolean>(kind, javas, "acquire", { wait: longLease }))
      assert.isTrue(yield* Lock.forceRelease(ours(javas)))
      assert.isTrue(yield* third)
      yield* two.run(kind, javas, "release")

      const holding = yield* Lock.scoped(ours(typeScripts), { leaseTime: longLease })
      const fourth = yield* waits(
        typeScripts,
        Effect.provideContext(Lock.withLock(Effect.void, ours(typeScripts)), another)
      )
      assert.isTrue(yield* one.run(kind, typeScripts, "forceRelease"))
      yield* fourth
      assert.strictEqual((yield* Effect.flip(holding.release))._tag, "LockLost")
    })

    test("TypeScript and Java contend for one lock, and no increment is lost", function* () {
      const { java } = yield* Site
      const name = freshName("interop")
      const counter = yield* Counter.make
      const javas = ["one", "two"].map((thread) =>
        java.thread(thread).run(kind, name, "count", { port: counter.port, times: 100 })
      )
      const ourSection = Lock.withLock(counter.increment, ours(name))
      const us = Effect.repeat(ourSection, Schedule.recurs(99))
      yield* Effect.all([...javas, us, us], { concurrency: "unbounded", discard: true })
      assert.strictEqual(counter.value(), 400)
    })

    test("the watchdog of each keeps the other out for longer than a lease", function* () {
      const { java } = yield* Site
      const [javas, typeScripts] = [freshName("interop"), freshName("interop")]
      const [holder, other] = [java.thread("holder"), java.thread("other")]
      yield* holder.run(kind, javas, "acquire")
      const holding = yield* Lock.scoped(ours(typeScripts))
      const until = performance.now() + 1.5 * watchdogLease
      while (performance.now() < until) {
        assert.isTrue(Option.isNone(yield* Lock.tryScoped(ours(javas))), "Java's lock was taken")
        assert.isFalse(yield* other.run(kind, typeScripts, "tryAcquire"), "TypeScript's lock was taken")
        yield* Effect.sleep(100)
      }
      assert.strictEqual(yield* holder.run(kind, javas, "holdCount"), 1)
      yield* holding.ensureHeld
      yield* holder.run(kind, javas, "release")
      yield* holding.release
    })

    // on the server, where the processes need to know but one address
    if (on === "cluster") return
    test("a side that dies is replaced when its lease is over, and not before", function* () {
      const { java, locks, nodes, url } = yield* Site
      const [redis] = nodes as [Redis]
      const [javas, typeScripts] = [freshName("interop"), freshName("interop")]
      // nobody sends a message when a lease ends: this one asks as often as by default
      const another = yield* Layer.build(locks({ fallbackInterval: undefined }))
      const doomed = yield* JavaClient.start({ address: url, watchdogTimeout: watchdogLease })
      yield* doomed.thread("holder").run(kind, javas, "acquire")
      const process = yield* holderProcess({ kind: kindName, name: typeScripts, url, watchdogLease })

      const heirs = yield* Effect.forkScoped(
        Effect.all(
          [
            timed(Effect.provideContext(Lock.withLock(Effect.succeed(true), ours(javas)), another)),
            timed(java.thread("heir").run<boolean>(kind, typeScripts, "acquire", { wait: longLease }))
          ],
          { concurrency: "unbounded" }
        ),
        { startImmediately: true }
      )
      yield* Effect.all([doomed.die, process.kill], { concurrency: "unbounded" })
      const left = yield* Effect.promise(() => Promise.all([redis.pttl(javas), redis.pttl(typeScripts)]))
      const seenAt = performance.now()
      const acquired = yield* soon("the heirs get the locks of the dead", Fiber.join(heirs))
      for (const [index, { at, value }] of acquired.entries()) {
        assert.isTrue(value)
        assert.isTrue(left[index]! > 0 && left[index]! <= watchdogLease, `${left[index]} ms left`)
        assert.isAtLeast(at - seenAt, left[index]! - 100, "before the lease was over")
      }
    })
  })
