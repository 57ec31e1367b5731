import { assert, it } from "@effect/vitest"
import { continued, doubleOwners, overlappingRuns, stallsOf } from "./judge.ts"

const run = (run: string, process: string, ...times: ReadonlyArray<number>) =>
  times.map((at) => ({ at, process, what: "entity 1", run }))

it("Two runs of one entity are a violation when one begins before the other has ended, and none when it begins afterwards", () => {
  const one = run("one/1", "one", 10, 20, 30)
  assert.deepStrictEqual(overlappingRuns([...one, ...run("two/1", "two", 31, 40)], []), [])
  assert.strictEqual(overlappingRuns([...one, ...run("two/1", "two", 29, 40)], []).length, 1)
  const other = run("two/1", "two", 29, 40).map((step) => ({ ...step, what: "entity 2" }))
  assert.deepStrictEqual(overlappingRuns([...one, ...other], []), [])
})

it("What a stopped process had begun counts until it was stopped, and again if it goes on after it must have noticed", () => {
  const stop = { process: "one", from: 15, stopped: 16, to: 1000, noticed: 2000 }
  const two = run("two/1", "two", 500, 2500)
  assert.deepStrictEqual(overlappingRuns([...run("one/1", "one", 10, 1001), ...two], [stop]), [])
  const [begunMeanwhile, begunLater] = [run("one/1", "one", 16, 1001), run("one/1", "one", 17, 1001)]
  assert.deepStrictEqual(overlappingRuns([...begunMeanwhile, ...two], [stop]), [])
  assert.strictEqual(overlappingRuns([...begunLater, ...two], [stop]).length, 1)
  const late = 2001
  assert.strictEqual(overlappingRuns([...run("one/1", "one", 10, 1001, late), ...two], [stop]).length, 1)
})

it("What a stopped process begins when it continues is a violation if it goes on after it must have noticed", () => {
  const stop = { process: "one", from: 15, stopped: 16, to: 1000, noticed: 2000 }
  const two = run("two/1", "two", 500, 4000)
  assert.deepStrictEqual(overlappingRuns([...run("one/1", "one", 1000, 1500), ...two], [stop]), [])
  const late = 2001
  assert.strictEqual(overlappingRuns([...run("one/1", "one", 1500, late), ...two], [stop]).length, 1)
  assert.strictEqual(overlappingRuns([...run("one/1", "one", late, late + 1), ...two], [stop]).length, 1)
})

it("A shard that two runners believe to own at the same time is a violation", () => {
  const claim = (process: string, at: number, ...shards: ReadonlyArray<number>) => ({
    process,
    before: at - 1,
    at,
    shards
  })
  const one = [claim("one", 100, 1, 2), claim("one", 200, 1, 2), claim("one", 300, 1)]
  assert.deepStrictEqual(doubleOwners([...one, claim("two", 210, 2), claim("two", 310, 2)], []), [])
  assert.strictEqual(doubleOwners([...one, claim("two", 110, 2), claim("two", 210, 2)], []).length, 1)
})

it("A process that claims nothing for half a lease counts as stopped, until it has claimed ten times again", () => {
  const claims = [100, 200, 1800, 2000, ...Array.from({ length: 10 }, (_, index) => 2300 + 300 * index)].map((at) => ({
    process: "one",
    before: at - 10,
    at,
    shards: [1]
  }))
  assert.deepStrictEqual(stallsOf(claims, 3000), [{ process: "one", from: 190, stopped: 200, to: 1800, noticed: 5000 }])
  assert.deepStrictEqual(stallsOf(claims, 4000), [])
  const stop = { process: "one", from: 150, stopped: 250, resumed: 1000 }
  assert.deepStrictEqual(continued(claims, stop), { process: "one", from: 150, stopped: 250, to: 1800, noticed: 5000 })
})
