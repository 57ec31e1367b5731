/**
 * The table of operations.
 */
import { readdirSync } from "node:fs"
import { assert, it } from "@effect/vitest"
import { operations } from "../kit/operations.ts"

const scripts = new URL("../../lua/", import.meta.url)

it("Every script under lua/ has one row in the table of operations, of its own name", () => {
  const names = readdirSync(scripts)
    .filter((directory) => directory !== "include")
    .flatMap((directory) =>
      readdirSync(new URL(`${directory}/`, scripts)).map((file) => `${directory}/${file.replace(/\.lua$/, "")}`)
    )
  assert.sameMembers(Object.keys(operations), names)
  for (const [name, operation] of Object.entries(operations)) assert.strictEqual(operation.name, name)
})
