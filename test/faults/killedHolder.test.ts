import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { FairLock, FencedLock, Lock, SpinLock } from "effect-redis-lock"
import { client } from "../kit/clients.ts"
import { enter, queueUp } from "../kit/sections.ts"
import { belongsTo, subscribers } from "../kit/server/conditions.ts"
import { onServer } from "../kit/server/onServer.ts"
import { waitFor } from "./kinds.ts"
import { start } from "./processes.ts"

describe("SIGKILL", () => {
  const kinds = {
    plain: (name: string) => Lock.make(name),
    fair: (name: string) => FairLock.make(name),
    fenced: (name: string) => FencedLock.make(name),
    spin: (name: string) => SpinLock.make(name)
  }
  for (const kind of ["plain", "fair", "fenced", "spin"] as const) {
    it.live(
      `After SIGKILL of a holder of a ${kind} lock a waiter gets it when the lease is over, with a higher token`,
      onServer(({ redis, server }) =>
        Effect.gen(function* () {
          const settings = { url: server.url, kind, lock: "report", fibers: 1, watchdogLeaseTime: 1500 } as const
          const doomed = yield* start("worker", settings)
          const killed = yield* doomed.told("entered")
          const waiter = yield* waitFor(yield* client(server), kinds[kind]("report"))
          yield* belongsTo(redis, "report", killed)
          yield* doomed.signal("SIGKILL")
          const holding = yield* waiter.entered
          assert.isTrue(holding.token > BigInt(killed.token))
          if (kind === "fenced") assert.deepStrictEqual([killed.token, holding.token], ["1", 2n])
          yield* belongsTo(redis, "report", holding)
          yield* holding.release
        })
      )
    )
  }

  it.live(
    "After SIGKILL of a waiter nothing of it is left, and the next waiter is not held up",
    onServer(({ server, redis }) =>
      Effect.gen(function* () {
        const mine = yield* client(server)
        const first = yield* enter(mine, "report")
        const doomed = yield* start("holder", { url: server.url, lock: "report", watchdogLeaseTime: 30_000 })
        yield* subscribers(redis, "report", 1)
        const next = yield* queueUp(yield* client(server), "report")
        yield* subscribers(redis, "report", 2)
        yield* doomed.signal("SIGKILL")
        yield* subscribers(redis, "report", 1)
        yield* first.end
        const second = yield* next.entered
        yield* belongsTo(redis, "report", second.holding)
        assert.isFalse(doomed.hasTold("acquired"))
        yield* second.finish
      })
    )
  )
})
