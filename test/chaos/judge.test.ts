import type { Kind, Told } from "@effect-redis-lock/chaos/events"
import { operationsOf, sectionsOf } from "@effect-redis-lock/chaos/history"
import { gapsOf, judge, recoveriesOf, type Rules, type Seen } from "@effect-redis-lock/chaos/judge"
import { assert, describe, it } from "@effect/vitest"

interface Entry {
  readonly process: number
  readonly asked: number
  readonly enters: number
  readonly leaves?: number
  readonly until: number
  readonly token: number
  readonly kind?: Kind
}

const told = (entries: ReadonlyArray<Entry>): ReadonlyArray<Told> =>
  entries
    .flatMap(({ asked, enters, kind = "fair", leaves, process, token, until }): ReadonlyArray<Told> => {
      const about = { process, asked, until, fiber: `${kind}-0`, kind, owner: `owner ${process}`, token: String(token) }
      return [
        { ...about, event: "enters", at: enters },
        ...(leaves === undefined
          ? []
          : [
              { ...about, event: "leaves", at: leaves } as const,
              { ...about, event: "ended", at: leaves, outcome: "done" } as const
            ])
      ]
    })
    .sort((a, b) => a.at - b.at)

const rules: Rules = { calmSince: 0, patience: 5000, living: [] }
const violations = (entries: ReadonlyArray<Entry>, seen: ReadonlyArray<Seen> = [], given = rules) =>
  judge(told(entries), seen, given).violations.map(({ what }) => what.split(":")[0])

describe("the history of a chaos run", () => {
  const entry = { process: 1, asked: 0, enters: 10, until: 1000, token: 1 }
  const release = (entry: Entry, killed = new Map<number, number>()) => {
    const all = told([entry])
    const {
      call,
      outcome,
      return: end
    } = operationsOf(sectionsOf(all, killed), all, [])[1] as Extract<
      ReturnType<typeof operationsOf>[number],
      { readonly op: "release" }
    >
    return [call, end, outcome]
  }

  it("The history of a chaos run says that a holder was inside until it left, its process was killed, or its deadline", () => {
    assert.deepStrictEqual(release({ ...entry, leaves: 20 }), [20, 20, "ok"])
    assert.deepStrictEqual(release(entry), [1000, undefined, "unknown"])
    assert.deepStrictEqual(release(entry, new Map([[1, 25]])), [25, undefined, "unknown"])
  })

  it("The history of a chaos run says that a holder was inside after its deadline, where it was", () => {
    assert.deepStrictEqual(release({ ...entry, leaves: 1600 }), [1600, 1600, "ok"])
  })
})

describe("the judge of a chaos run", () => {
  it("The judge of a chaos run finds a waiter overtaken by one that asked later, if its process was not silent", () => {
    const early = { process: 1, asked: 200, enters: 300, leaves: 310, until: 9000, token: 1 }
    const late = { process: 2, asked: 0, enters: 2000, leaves: 2010, until: 9000, token: 2 }
    const queue: Seen = { event: "queue", at: 100, owners: ["owner 2"] }
    assert.deepStrictEqual(violations([early, late], [queue]), ["overtaken"])
    assert.deepStrictEqual(violations([{ ...early, asked: 50 }, late], [queue]), [])
    const silent: ReadonlyArray<Seen> = [
      queue,
      { event: "stopped", at: 150, process: 2 },
      { event: "continued", at: 1800, process: 2 }
    ]
    assert.deepStrictEqual(violations([early, late], silent), [])
    const proxies = { event: "stalled", since: 500 } as const
    assert.deepStrictEqual(violations([early, late], [queue, { ...proxies, at: 850 }]), ["overtaken"])
    assert.deepStrictEqual(violations([early, late], [queue, { ...proxies, at: 950 }]), [])
    const twice: ReadonlyArray<Seen> = [
      queue,
      { event: "stopped", at: 150, process: 2 },
      { event: "continued", at: 450, process: 2 },
      { event: "cutOff", at: 600, process: 2 },
      { event: "reached", at: 900, process: 2 }
    ]
    assert.deepStrictEqual(violations([early, late], twice), [])
    assert.deepStrictEqual(violations([early, late], twice.slice(0, 3)), ["overtaken"])
    const within: ReadonlyArray<Seen> = [
      queue,
      { event: "cutOff", at: 150, process: 2 },
      { event: "cutOff", at: 200, process: 2 },
      { event: "reached", at: 300, process: 2 },
      { event: "reached", at: 1800, process: 2 }
    ]
    assert.deepStrictEqual(violations([early, late], within), [])
  })

  it("The judge of a chaos run finds a fiber that was served too late after the last fault, or not at all", () => {
    const living = [{ process: 1, fibers: ["fair-0"] }]
    const at = (enters: number) => ({ process: 1, asked: 0, enters, leaves: enters + 5, until: enters + 100, token: 1 })
    assert.deepStrictEqual(violations([at(4000)], [], { ...rules, living }), [])
    assert.deepStrictEqual(violations([at(6000)], [], { ...rules, living }), ["not served"])
    assert.deepStrictEqual(violations([], [], { ...rules, living }), ["not served"])
  })

  it("The judge of a chaos run says how long after each fault those whom it concerned were served", () => {
    const at = (process: number, enters: number) => ({
      process,
      asked: 0,
      enters,
      leaves: enters,
      until: enters,
      token: 1
    })
    const sections = sectionsOf(told([at(1, 10), at(2, 20), at(1, 130), at(2, 150), at(3, 190)]))
    const healed = [
      { fault: "stop", at: 100, process: 1 },
      { fault: "stop", at: 140, process: 1 },
      { fault: "kill", at: 100, process: 3 },
      // the third process was not there before
      { fault: "restart", at: 100 }
    ]
    assert.deepStrictEqual(recoveriesOf(healed, sections), {
      stop: [30, Number.POSITIVE_INFINITY],
      kill: [90],
      restart: [50]
    })
  })

  it("The judge of a chaos run says for how long nobody was inside after each fault", () => {
    const at = (process: number, enters: number, leaves: number, kind: Kind) => ({
      ...{ process, asked: 0, enters, leaves, until: leaves, token: 1, kind }
    })
    const sections = sectionsOf(
      told([
        at(1, 50, 120, "plain"),
        at(2, 150, 210, "plain"),
        at(1, 90, 380, "reader"),
        at(1, 100, 110, "fair"),
        at(2, 260, 280, "plain"),
        at(3, 385, 390, "writer")
      ])
    )
    assert.deepStrictEqual(gapsOf(sections, ["plain", "reader", "writer"], [100, 200, 400]), [
      { lock: "{chaos}:plain", at: 150, millis: 30 },
      { lock: "{chaos}:readWrite", at: 100, millis: 0 },
      { lock: "{chaos}:plain", at: 400, millis: 120 },
      { lock: "{chaos}:readWrite", at: 400, millis: 10 }
    ])
    // one that lasts longer than from one fault to the next
    const apart = sectionsOf(told([at(1, 100, 110, "plain"), at(2, 4500, 4510, "plain")]))
    const gaps = gapsOf(apart, ["plain"], [100, 2000, 4000, 5000])
    assert.deepStrictEqual(gaps[0], { lock: "{chaos}:plain", at: 4500, millis: 4390 })
  })

  it("The judge of a chaos run finds a section that ended with something other than a failure of its lock", () => {
    const defect: Told = { event: "ended", at: 1, process: 1, fiber: "fair-0", kind: "fair", outcome: "TypeError: oh" }
    const judgement = judge([defect], [], rules)
    assert.deepStrictEqual(
      judgement.violations.map(({ what }) => what),
      ["process 1, fair-0 failed: TypeError: oh"]
    )
  })
})
