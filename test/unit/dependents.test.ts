import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { Dependents } from "../../packages/core/dist/internal/hold/Lease.js"

it.effect("A section that learns of a loss when it begins is told once, and counts until it has ended", () =>
  Effect.sync(() => {
    const tasks: Array<() => void> = []
    const client = { inOwnTurn: (task: () => void) => void tasks.push(task) }
    const dependents = new Dependents()
    let told = 0
    const withdraw = dependents.add(() => told++, client, true)
    assert.strictEqual(told, 0, "not on the caller's stack")
    for (const task of tasks) task()
    assert.strictEqual(told, 1)
    assert.isFalse(dependents.isEmpty)
    withdraw()
    assert.isTrue(dependents.isEmpty)
  })
)
