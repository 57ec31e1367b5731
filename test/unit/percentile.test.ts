import { assert, it } from "vitest"
import { percentile } from "../kit/percentile.ts"

it("A percentile is the value at its nearest rank", () => {
  const values = Array.from({ length: 200 }, (_, i) => 200 - i)
  assert.strictEqual(percentile(values, 50), 100)
  assert.strictEqual(percentile(values, 99), 198)
  assert.strictEqual(percentile([7], 99), 7)
})
