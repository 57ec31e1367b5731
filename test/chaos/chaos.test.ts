/**
 * Short runs, each with a RedisServer of its own.
 */
import { chaos, type ChaosReport, keysLeft } from "@effect-redis-lock/chaos/chaos"
import { buildChecker } from "@effect-redis-lock/chaos/check"
import { describeFault, nemeses, scheduleOf } from "@effect-redis-lock/chaos/nemeses"
import { noPostgresql, openRegister, startRegister } from "@effect-redis-lock/chaos/register"
import { RedisServer } from "@effect-redis-lock/testing"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { randomUUID } from "node:crypto"
import { writeSync } from "node:fs"
import { bare } from "../kit/server/bareRedis.ts"

const shown = (report: ChaosReport): string =>
  [...report.violations.map(({ what }) => what), ...report.events.slice(-300).map(({ line }) => line)].join("\n")

const missing = await buildChecker()
if (missing !== undefined) writeSync(2, `\nChaos runs do not look for two holders at once: ${missing}\n`)

const withoutPostgresql = await noPostgresql()
if (withoutPostgresql !== undefined) writeSync(2, `\nChaos runs write into Redis alone: ${withoutPostgresql}\n`)
const systems = withoutPostgresql === undefined ? (["redis", "postgresql"] as const) : (["redis"] as const)

describe("the register of a chaos run", () => {
  for (const system of systems) {
    it.live(`A register in ${system} refuses whoever has an older token than the newest that has read`, () =>
      Effect.gen(function* () {
        const place = yield* startRegister(system)
        const { close, read, write } = openRegister(place)
        yield* Effect.promise(async () => {
          assert.deepStrictEqual(await read("a", "1"), [])
          assert.isTrue(await write("a", ["of 1"], "1"))
          assert.deepStrictEqual(await read("a", "2"), ["of 1"])
          assert.isFalse(await write("a", ["of 1", "late"], "1"))
          assert.isUndefined(await read("a", "1"))
          assert.isTrue(await write("a", ["of 1", "of 2"], "2"))
          assert.deepStrictEqual(await read("a"), ["of 1", "of 2"])
          assert.isTrue(await write("a", ["without a token"]))
          assert.deepStrictEqual(await read("b"), [])
          close()
        })
      }).pipe(Effect.scoped)
    )
  }
})

describe("a chaos run of a few seconds", () => {
  it.live("A chaos run finds nothing wrong with clients that check whether they still hold their locks", () =>
    Effect.gen(function* () {
      const report = yield* chaos({
        seed: 1,
        millis: 7000,
        faults: [
          { at: 1000, fault: "late", of: 2, lasts: 100, by: 2000 },
          { at: 1200, fault: "stop", of: 0, lasts: 2500 },
          { at: 1500, fault: "lateMessages", of: 3, lasts: 3000 },
          { at: 2500, fault: "restart", of: 0, lasts: 300 },
          { at: 4000, fault: "kill", of: 1, lasts: 300 },
          { at: 4200, fault: "late", of: 3, lasts: 300, by: 1500 },
          { at: 4500, fault: "block", of: 0, lasts: 1000 },
          { at: 5500, fault: "reset", of: 2, lasts: 1 }
        ]
      })
      assert.lengthOf(report.violations, 0, shown(report))
      assert.isAbove(report.sections.length, 20)
    })
  )

  it.live.skipIf(missing !== undefined)(
    "A chaos run finds a lock without an owner, whose holder goes on after its lease, and what is lost by that",
    () =>
      Effect.gen(function* () {
        const report = yield* chaos({
          seed: 1,
          millis: 9000,
          library: "naive",
          faults: [{ at: 1000, fault: "stop", of: 0, lasts: 6000, inside: true }]
        })
        for (const model of ["mutex", "register", "set"]) {
          assert.isTrue(
            report.violations.some(({ what }) => what.startsWith(`{chaos}:plain, ${model}:`)),
            shown(report)
          )
        }
        assert.isTrue(report.events.some(({ line }) => line.endsWith(": stopped")))
      })
  )

  it.live("Faults of a chaos run that are apart begin when everybody has been served after the one before", () =>
    Effect.gen(function* () {
      const report = yield* chaos({
        seed: 1,
        millis: 12_000,
        apart: true,
        kinds: ["plain"],
        faults: [
          { at: 500, fault: "block", of: 0, lasts: 3000 },
          { at: 600, fault: "reset", of: 1, lasts: 1 }
        ]
      })
      // where they are served late, the second fault never begins
      const [blocked, reset] = report.faults.map(
        (fault) => report.events.find(({ line }) => line === describeFault(fault))?.at
      )
      assert.isTrue(
        report.events.some(
          ({ at, line }) =>
            at > blocked! + 3000 &&
            at < (reset ?? Number.POSITIVE_INFINITY) &&
            /^process 0, plain-\d: enters/.test(line)
        ),
        shown(report)
      )
    })
  )
})

describe("the faults of a chaos run", () => {
  const faultsOf = (seed: number, only?: ReadonlyArray<string>) =>
    scheduleOf({ seed, millis: 600_000, clients: 4, mortal: [0, 1], server: "single", only })

  it("The faults of a chaos run are decided by its seed", () => {
    assert.deepStrictEqual(faultsOf(1), faultsOf(1))
    assert.notDeepEqual(faultsOf(1), faultsOf(2))
  })

  it("The faults of a chaos run are of every kind that leaves the grants to Redis, and spare clients that must not be killed or stopped", () => {
    const faults = faultsOf(1)
    const usual = Object.entries(nemeses).flatMap(([fault, { forgets, on }]) =>
      forgets !== true && on?.includes("single") !== false ? [fault] : []
    )
    assert.deepStrictEqual([...new Set(faults.map(({ fault }) => fault))].sort(), usual.sort())
    for (const { fault, of } of faults) if (nemeses[fault]!.to === "process") assert.include([0, 1], of)
    assert.isTrue(faults.some(({ by = 0 }) => by > 30_000))
  })

  it("A chaos run has only the faults that are asked for", () => {
    assert.deepStrictEqual([...new Set(faultsOf(1, ["forget", "stop"]).map(({ fault }) => fault))].sort(), [
      "forget",
      "stop"
    ])
  })
})

describe("what a chaos run leaves", () => {
  it.live("A chaos run leaves places only of processes that were killed, and only for a minute", () =>
    Effect.gen(function* () {
      const redis = yield* bare(yield* RedisServer.start())
      const [closed, killed] = [randomUUID(), randomUUID()]
      yield* Effect.promise(async () => {
        const place = async (key: string, client: string, millis?: number) => {
          await redis.zadd(`effect_redis_lock_places:${key}`, 1, `${client}:1`)
          if (millis !== undefined) await redis.pexpire(`effect_redis_lock_places:${key}`, millis)
        }
        await place("of a killed one", killed, 60_000)
        await place("of a closed one", closed, 60_000)
        await place("for ever", killed)
        await place("for too long", killed, 120_000)
        const left = await keysLeft(redis, new Set([closed]))
        assert.deepStrictEqual(left.map((key) => key.split(":")[1]).sort(), [
          "for ever",
          "for too long",
          "of a closed one"
        ])
      })
    }).pipe(Effect.scoped)
  )
})
