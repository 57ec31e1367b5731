import { assert, it } from "@effect/vitest"
import { Arbitrary, Effect, Schema } from "effect"
import { type Due, DueQueue } from "../../packages/core/dist/internal/time/clock.js"

const Op = Schema.Struct({
  operation: Schema.Literals(["put", "put", "remove", "move", "take"]),
  item: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 15 })),
  due: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 50 }))
})

it.effect.prop(
  "The first item of a DueQueue is always the one that is due first",
  [Arbitrary.array(Arbitrary.schema(Op), { minLength: 5, maxLength: 80 })],
  ([ops]) =>
    Effect.sync(() => {
      const queue = new DueQueue<Due>()
      const items = Array.from({ length: 16 }, (): Due => ({ due: 0, heapIndex: -1 }))
      const model = new Set<Due>()
      for (const { due, item, operation } of ops) {
        const target = items[item]!
        if (operation === "remove") {
          queue.remove(target)
          model.delete(target)
        } else if (operation === "take") {
          const { first } = queue
          if (first !== undefined) {
            queue.remove(first)
            model.delete(first)
          }
        } else {
          target.due = due
          queue.put(target)
          model.add(target)
        }
        assert.strictEqual(queue.items.length, model.size)
        assert.strictEqual(queue.first?.due, model.size === 0 ? undefined : Math.min(...[...model].map((it) => it.due)))
      }
    }),
  { arbitrary: { runs: 300, size: 50 } }
)
