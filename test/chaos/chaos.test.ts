import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { chaos, type ChaosReport } from "./chaos.ts"
import { scheduleOf } from "./schedule.ts"

const shown = (report: ChaosReport): string =>
  [...report.violations.map(({ what }) => what), ...report.history.slice(-300).map(({ line }) => line)].join("\n")

describe("a chaos run of a few seconds", () => {
  it.live("A chaos run finds nothing wrong with clients that check whether they still hold their locks", () =>
    Effect.gen(function* () {
      const report = yield* chaos({
        seed: 1,
        millis: 7000,
        faults: [
          { at: 1000, fault: "late", client: 2, holds: 100, late: 2000 },
          { at: 1200, fault: "stop", client: 0, lasts: 2500 },
          { at: 2500, fault: "restart", down: 300 },
          { at: 4000, fault: "kill", client: 1, back: 300 },
          { at: 4200, fault: "late", client: 3, holds: 300, late: 1500 },
          { at: 5500, fault: "cut", client: 2 }
        ]
      })
      assert.lengthOf(report.violations, 0, shown(report))
      assert.isAbove(report.sections, 20)
    })
  )

  it.live("A chaos run finds a client that goes on after the loss of its lock", () =>
    Effect.gen(function* () {
      const report = yield* chaos({
        seed: 1,
        millis: 9000,
        broken: true,
        faults: [{ at: 1000, fault: "stop", client: 0, lasts: 6000, inside: true }]
      })
      assert.isTrue(
        report.violations.some(({ what }) => what.startsWith("double entry")),
        shown(report)
      )
      assert.isTrue(report.history.some(({ line }) => line.endsWith(": stopped")))
    })
  )
})

describe("the faults of a chaos run", () => {
  const faultsOf = (seed: number) => scheduleOf({ seed, millis: 600_000, clients: 4, mortal: [0, 1] })

  it("The faults of a chaos run are decided by its seed", () => {
    assert.deepStrictEqual(faultsOf(1), faultsOf(1))
    assert.notDeepEqual(faultsOf(1), faultsOf(2))
  })

  it("The faults of a chaos run are of every kind, and spare clients that must not be killed or stopped", () => {
    const faults = faultsOf(1)
    assert.deepStrictEqual([...new Set(faults.map(({ fault }) => fault))].sort(), [
      "cut",
      "kill",
      "late",
      "pause",
      "restart",
      "silence",
      "sleep",
      "stop"
    ])
    for (const fault of faults) {
      if (fault.fault === "kill" || fault.fault === "stop") assert.include([0, 1], fault.client)
    }
    assert.isTrue(faults.some((fault) => fault.fault === "late" && fault.late > 30_000))
  })
})
