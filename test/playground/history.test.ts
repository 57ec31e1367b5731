import { parseHistory } from "@effect-redis-lock/playground/History"
import { assert, it } from "@effect/vitest"
import { unlockedWorld } from "./unlockedWorld.ts"

it("The history of a world that fails says who was inside when it failed, and its file is read back as it was written", () => {
  const history = unlockedWorld()
  const inside = history.lanes.filter(({ holds }) => holds.some(({ to }) => to === undefined))
  assert.isAtLeast(inside.length, 2, "two were inside at once")
  for (const { holds, name } of inside) {
    assert.match(name, /^client [123], worker [123]$/)
    assert.strictEqual(holds.at(-1)!.what, "open")
    assert.isAtMost(holds.at(-1)!.from, history.end)
  }
  assert.include(history.problem, "is inside together with 1 others")
  assert.deepStrictEqual(parseHistory(JSON.stringify(history)), history)
})

it("A file that is no history of a world is refused", () => {
  for (const text of ["", "{}", "[1]", '{"title":"a","problem":"b","end":"late","lanes":[],"events":[]}']) {
    assert.isUndefined(parseHistory(text), text)
  }
})
