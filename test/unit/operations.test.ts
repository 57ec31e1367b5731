/**
 * The table of operations.
 */
import { readdirSync } from "node:fs"
import { assert, it } from "@effect/vitest"
import { LockStore } from "effect-redis-lock"

const scripts = new URL("../../lua/", import.meta.url)

it("Every script under lua/ has one row in the table of operations, of its own name", () => {
  const names = readdirSync(scripts)
    .filter((directory) => directory !== "include")
    .flatMap((directory) =>
      readdirSync(new URL(`${directory}/`, scripts)).map((file) => `${directory}/${file.replace(/\.lua$/, "")}`)
    )
  assert.sameMembers(Object.keys(LockStore.operations), names)
  for (const [name, operation] of Object.entries(LockStore.operations)) assert.strictEqual(operation.name, name)
})
