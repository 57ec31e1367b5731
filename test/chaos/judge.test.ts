import { assert, describe, it } from "@effect/vitest"
import type { Kind } from "./events.ts"
import { judge, type Rules, type Seen, type Told } from "./judge.ts"

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

describe("the judge of a chaos run", () => {
  const first = { process: 1, asked: 0, enters: 10, until: 1000, token: 1 }

  it("The judge of a chaos run accepts a fiber that enters when the other has left, is past its deadline, or is dead", () => {
    const second = { process: 2, asked: 5, enters: 30, leaves: 40, until: 2000, token: 2 }
    assert.deepStrictEqual(violations([{ ...first, leaves: 20 }, second]), [])
    assert.deepStrictEqual(violations([first, { ...second, enters: 1001, leaves: 1010 }]), [])
    assert.deepStrictEqual(violations([first, second], [{ event: "killed", at: 25, process: 1 }]), [])
    assert.deepStrictEqual(violations([first, { ...second, kind: "plain" }]), [])
  })

  it("The judge of a chaos run finds a double entry, also by a stopped process that is not yet past its deadline", () => {
    const second = { process: 2, asked: 5, enters: 30, leaves: 40, until: 2000, token: 2 }
    assert.deepStrictEqual(violations([first, second]), ["double entry"])
    assert.deepStrictEqual(violations([first, second], [{ event: "stopped", at: 15, process: 1 }]), ["double entry"])
  })

  it("The judge of a chaos run finds a fiber that was still inside after its deadline", () => {
    const second = { process: 2, asked: 5, enters: 1500, leaves: 1510, until: 3000, token: 2 }
    assert.deepStrictEqual(violations([{ ...first, leaves: 1600 }, second]), ["double entry"])
  })

  it("The judge of a chaos run finds a token that does not rise", () => {
    const second = { process: 2, asked: 5, enters: 30, leaves: 40, until: 2000, token: 1 }
    assert.deepStrictEqual(violations([{ ...first, leaves: 20 }, second]), ["a token that does not rise"])
  })

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
    const twice: ReadonlyArray<Seen> = [
      queue,
      { event: "stopped", at: 150, process: 2 },
      { event: "continued", at: 650, process: 2 },
      { event: "cutOff", at: 800, process: 2 },
      { event: "reached", at: 1300, process: 2 }
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

  it("The judge of a chaos run finds a section that ended with something other than a failure of its lock", () => {
    const defect: Told = { event: "ended", at: 1, process: 1, fiber: "fair-0", kind: "fair", outcome: "TypeError: oh" }
    const judgement = judge([defect], [], rules)
    assert.deepStrictEqual(
      judgement.violations.map(({ what }) => what),
      ["process 1, fair-0 failed: TypeError: oh"]
    )
  })
})
