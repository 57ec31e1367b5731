import { anomaliesOf, buildChecker, checked } from "@effect-redis-lock/chaos/check"
import { assert, describe, it } from "@effect/vitest"
import { writeSync } from "node:fs"
import type { Told } from "./entities.ts"
import { continued, historyOf, stallsOf, type Stop } from "./judge.ts"

const run = (hold: string, process: number, ...times: ReadonlyArray<number>) =>
  times.map((at): Told => ({ event: "stays", at, process, lock: "entity 1", hold }))
const claim = (process: number, at: number, ...shards: ReadonlyArray<number>): Told => ({
  ...{ event: "claims", process, at, shards }
})

const missing = await buildChecker()
if (missing !== undefined) writeSync(2, `\nThe judge of runners is not tested: ${missing}\n`)

/** How many locks were held twice. */
const violations = async (told: ReadonlyArray<Told>, stops: ReadonlyArray<Stop> = []) => {
  const inOrder = told.toSorted((one, other) => one.at - other.at)
  const verdicts = await checked(historyOf(inOrder, stops))
  return typeof verdicts === "string" ? assert.fail(verdicts) : anomaliesOf(verdicts).length
}

const stop: Stop = { process: 1, from: 15, stopped: 16, to: 1000, noticed: 2000 }
const late = 2001

describe.skipIf(missing !== undefined)("the judge of runners", () => {
  it("Two runs of one entity are a violation when one begins before the other has ended, and none when it begins afterwards", async () => {
    const one = run("1/1", 1, 10, 20, 30)
    assert.strictEqual(await violations([...one, ...run("2/1", 2, 31, 40)]), 0)
    assert.strictEqual(await violations([...one, ...run("2/1", 2, 29, 40)]), 1)
    const other = run("2/1", 2, 29, 40).map((step) => ({ ...step, lock: "entity 2" }))
    assert.strictEqual(await violations([...one, ...other]), 0)
  })

  it("What a stopped process had begun counts until it was stopped, and again if it goes on after it must have noticed", async () => {
    const two = run("2/1", 2, 500, 2500)
    assert.strictEqual(await violations([...run("1/1", 1, 10, 1001), ...two], [stop]), 0)
    assert.strictEqual(await violations([...run("1/1", 1, 16, 1001), ...two], [stop]), 0)
    assert.strictEqual(await violations([...run("1/1", 1, 17, 1001), ...two], [stop]), 1)
    assert.strictEqual(await violations([...run("1/1", 1, 10, 1001, late), ...two], [stop]), 1)
  })

  it("What a stopped process begins when it continues is a violation if it goes on after it must have noticed", async () => {
    const two = run("2/1", 2, 500, 4000)
    assert.strictEqual(await violations([...run("1/1", 1, 1000, 1500), ...two], [stop]), 0)
    assert.strictEqual(await violations([...run("1/1", 1, 1500, late), ...two], [stop]), 1)
    assert.strictEqual(await violations([...run("1/1", 1, late, late + 1), ...two], [stop]), 1)
  })

  it("A shard that two runners believe to own at the same time is a violation", async () => {
    const one = [claim(1, 100, 1, 2), claim(1, 200, 1, 2), claim(1, 300, 1)]
    assert.strictEqual(await violations([...one, claim(2, 210, 2), claim(2, 310, 2)]), 0)
    assert.strictEqual(await violations([...one, claim(2, 110, 2), claim(2, 210, 2)]), 1)
    // it had lost them in between
    assert.strictEqual(await violations([...one, claim(2, 310, 2), claim(2, 390), claim(1, 400, 1, 2)]), 0)
    assert.strictEqual(await violations([...one, claim(2, 310, 1), claim(1, 1000, 1)]), 0)
  })
})

it("A process that claims nothing for half a lease counts as stopped, until it has claimed ten times again", () => {
  const times = [100, 200, 1800, 2000, ...Array.from({ length: 10 }, (_, index) => 2300 + 300 * index)]
  const claims = times.map((at) => claim(1, at, 1))
  assert.deepStrictEqual(stallsOf(claims, 3000), [{ process: 1, from: 200, stopped: 200, to: 1800, noticed: 5000 }])
  assert.deepStrictEqual(stallsOf(claims, 4000), [])
  const resumed = { process: 1, from: 150, stopped: 250, resumed: 1000 }
  assert.deepStrictEqual(continued(claims, resumed), { process: 1, from: 150, stopped: 250, to: 1800, noticed: 5000 })
})
