/**
 * Four processes count under one lock while its master is replaced again and again.
 */
import { randomOf } from "@effect-redis-lock/playground/VirtualTime"
import { RedisServer } from "@effect-redis-lock/testing"
import { Effect } from "effect"
import type { AcknowledgeOptions } from "effect-redis-lock"
import { start } from "../faults/processes.ts"
import { bare } from "../kit/server/bareRedis.ts"
import { between } from "../simulation/network.ts"
import { type Fault, lock, sites } from "./site.ts"

export interface Campaign {
  readonly deployment: keyof typeof sites
  readonly acknowledge: AcknowledgeOptions | "none"
  readonly faults: ReadonlyArray<Fault>
  /** How often the master is replaced. */
  readonly failovers: number
  readonly seed: number
}

export interface Outcome {
  readonly played: ReadonlyArray<Fault>
  readonly sections: number
  readonly lost: number
  /** Acquisitions that failed, by reason. */
  readonly failures: ReadonlyMap<string, number>
  /** Increments of the counter that nothing protects but the lock, and how many of them are not in it. */
  readonly counted: number
  readonly uncounted: number
  /** The same of the register that checks tokens, and how often it refused one. */
  readonly registered: number
  readonly unregistered: number
  readonly stale: number
}

const processes = 4

export const play = Effect.fnUntraced(function* ({ acknowledge, deployment, failovers, faults, seed }: Campaign) {
  const random = randomOf(seed)
  const site = yield* sites[deployment]
  const accounts = yield* RedisServer.start()
  const redis = yield* bare(accounts)
  const tellers = yield* Effect.forEach(Array.from({ length: processes }), () =>
    start("teller", { locks: site.url, acknowledge, lock, accounts: accounts.url, fibers: 2 })
  )
  for (const teller of tellers) yield* teller.told("ready")
  const played: Array<Fault> = []
  for (let i = 0; i < failovers; i++) {
    yield* Effect.sleep(between(random, 500, 2000))
    // each of them in turn, as there may be few
    const fault = faults[(seed + i) % faults.length]!
    yield* site.play(fault, {
      cutOffMillis: between(random, 500, 1500),
      quiet: Effect.promise(() => redis.set("closed", "1")),
      // whoever comes now stays until there is another master
      begins: Effect.promise(() => redis.multi().set("stay", "1").del("closed").exec()).pipe(
        Effect.andThen(Effect.sleep(100))
      ),
      succeeded: Effect.promise(() => redis.del("stay"))
    })
    played.push(fault)
  }
  yield* Effect.sleep(1000)
  for (const teller of tellers) yield* teller.signal("SIGTERM")
  const totals = yield* Effect.forEach(tellers, (teller) => teller.told("ended"))
  const failures = new Map<string, number>()
  for (const [reason, times] of totals.flatMap(({ failures }) => Object.entries(failures))) {
    failures.set(reason, (failures.get(reason) ?? 0) + times)
  }
  const sum = (of: "counted" | "lost" | "registered" | "sections" | "stale") =>
    totals.reduce((all, each) => all + each[of], 0)
  const [counter, register] = yield* Effect.promise(() => redis.mget("counter", "register"))
  const outcome: Outcome = {
    played,
    failures,
    sections: sum("sections"),
    lost: sum("lost"),
    counted: sum("counted"),
    uncounted: sum("counted") - Number(counter),
    registered: sum("registered"),
    unregistered: sum("registered") - Number(register),
    stale: sum("stale")
  }
  return outcome
}, Effect.scoped)
