/**
 * The judge of elections, on histories that are known to be right or wrong.
 */
import { assert, it } from "vitest"
import { percentile, rivals } from "./judge.ts"

it("The judge of elections accepts leaders that follow each other", () => {
  const checks = [
    { process: "a", term: 1000n, at: 1200 },
    { process: "b", term: 5000n, at: 5100 },
    // reported late
    { process: "a", term: 1000n, at: 4900 },
    { process: "a", term: 9000n, at: 9100 }
  ]
  assert.deepStrictEqual(rivals(checks), [])
})

it("The judge of elections reports a process that believes it leads after another was elected", () => {
  const checks = [
    { process: "a", term: 1000n, at: 8000 },
    { process: "b", term: 5000n, at: 5100 }
  ]
  assert.deepStrictEqual(rivals(checks), ["a believed it was leading with term 1000, 3 ms after b was elected"])
})

it("The judge of elections reports two processes that lead with the same term", () => {
  const checks = [
    { process: "a", term: 1000n, at: 1100 },
    { process: "b", term: 1000n, at: 1200 }
  ]
  assert.deepStrictEqual(rivals(checks), ["a and b have both led with term 1000"])
})

it("A percentile is the value at its nearest rank", () => {
  const values = Array.from({ length: 200 }, (_, i) => 200 - i)
  assert.strictEqual(percentile(values, 50), 100)
  assert.strictEqual(percentile(values, 99), 198)
  assert.strictEqual(percentile([7], 99), 7)
})
