/**
 * Processes that are told of permits, and do not come for them.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Scope } from "effect"
import { PermitSemaphore, Semaphore } from "effect-redis-lock"
import { client } from "../kit/clients.ts"
import { eventually } from "../kit/eventually.ts"
import { onServer } from "../kit/server/onServer.ts"
import { start } from "./processes.ts"

type Kind = "Semaphore" | "PermitSemaphore"

/** A section under the only permit. */
const section = <A, E>(kind: Kind, body: Effect.Effect<A, E>) =>
  kind === "Semaphore"
    ? Semaphore.withPermits(body, Semaphore.make("partner", { permits: 1 }), 1)
    : PermitSemaphore.withPermit(body, PermitSemaphore.make("partner", { permits: 1 }))

/** A process waits, and a client behind it; the process is stopped before the permit is free, and is told of it in vain. */
const after = (kind: Kind, signal: "SIGKILL" | "SIGSTOP") =>
  onServer(({ redis, server }) =>
    Effect.gen(function* () {
      const holder = yield* client(server, { watchdogLeaseTime: "1 hour" })
      const waiter = yield* client(server, { watchdogLeaseTime: "1 hour" })
      const scope = yield* Effect.scope
      const hasPlaces = (count: number) =>
        eventually(
          `${count} have places`,
          () => redis.zcard("effect_redis_lock_permit_places:{partner}"),
          (found) => found === count
        )
      const channels = () => redis.pubsub("CHANNELS", "redisson_sc:{partner}:*") as Promise<Array<unknown>>
      const told = Effect.gen(function* () {
        const settings = { url: server.url, semaphore: "partner", permits: 1, fibers: 1, worker: "a" }
        const process = yield* Scope.provide(start("permits", { ...settings, kind, watchdogLeaseTime: 1500 }), scope)
        yield* hasPlaces(1)
        yield* eventually("the process listens", channels, ({ length }) => length === 2)
        const next = yield* Effect.forkDetach(waiter.run(section(kind, Effect.succeed("in"))))
        yield* hasPlaces(2)
        yield* process.signal("SIGSTOP")
        return [next, process] as const
      })
      const [next, process] = yield* holder.run(section(kind, told))
      const wants = yield* Effect.promise(() => redis.hvals("effect_redis_lock_permit_wants:{partner}"))
      assert.isTrue(
        wants.some((wanted) => wanted.split(" ").length === 3),
        `one was told: ${wants.join()}`
      )
      if (signal === "SIGKILL") yield* process.signal(signal)
      assert.strictEqual(yield* Fiber.join(next), "in")
      yield* Effect.promise(() => redis.flushall())
    })
  )

describe("a process that was told that permits are free", () => {
  for (const kind of ["Semaphore", "PermitSemaphore"] as const) {
    it.live(`leaves the permit of a ${kind} to the next when it is killed`, after(kind, "SIGKILL"))
    it.live(`leaves the permit of a ${kind} to the next when it is stopped`, after(kind, "SIGSTOP"))
  }
})
