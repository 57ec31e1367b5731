import { assert, it } from "@effect/vitest"
import { HeldLeases, PassingMap } from "../../packages/core/dist/internal/hold/HeldLeases.js"

type Lease = Parameters<HeldLeases["add"]>[0]

const leaseOf = (lock: string) => ({ keys: { lock }, alongside: undefined }) as unknown as Lease

for (const gone of [0, 1, 2]) {
  it(`Of three readers of one lock, number ${gone + 1} leaves, and the others stay in their order`, () => {
    const held = new HeldLeases()
    const readers = [leaseOf("a"), leaseOf("a"), leaseOf("a")]
    const other = leaseOf("b")
    for (const lease of [...readers, other]) held.add(lease)
    assert.deepStrictEqual(held.of("a"), readers)
    held.remove(readers[gone]!)
    const left = readers.filter((_, i) => i !== gone)
    assert.deepStrictEqual(held.of("a"), left)
    // the second time it does nothing
    held.remove(readers[gone]!)
    assert.deepStrictEqual(held.all, [...left, other])
    for (const lease of left) held.remove(lease)
    assert.deepStrictEqual(held.of("a"), [])
    assert.strictEqual(held.size, 1)
    held.remove(other)
    assert.strictEqual(held.size, 0)
  })
}

it("A Map through which ten thousand entries pass has those that have not left, in their order", () => {
  const passing = new PassingMap<number, string>()
  const expected = new Map<number, string>()
  for (let i = 0; i < 10_000; i++) {
    passing.set(i, `${i}`)
    expected.set(i, `${i}`)
    const gone = i % 3 === 0 ? i : i - 100
    passing.delete(gone)
    expected.delete(gone)
    assert.strictEqual(passing.size, expected.size)
  }
  assert.deepStrictEqual(passing.keys(), [...expected.keys()])
  for (const [key, value] of expected) assert.strictEqual(passing.get(key), value)
  assert.isFalse(passing.has(0))
})
