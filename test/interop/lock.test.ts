import { assert } from "@effect/vitest"
import { Effect, Layer, Schedule } from "effect"
import { Lock } from "effect-redis-lock"
import * as Counter from "./Counter.ts"
import { Site, soon, withRedisson } from "./harness.ts"
import { lockSuite } from "./lockSuite.ts"
import { freshName } from "../kit/names.ts"

lockSuite("RLock")

withRedisson("RLock under contention", (test) => {
  for (const [title, count] of [
    ["Java gets its turns among clients of ours that hand a lock over to each other, and its releases wake ours", 3],
    ["Java gets its turns beside one client of ours that asks again at once", 1]
  ] as const) {
    test(title, function* () {
      const { java, locks } = yield* Site
      const name = freshName("interop")
      const counter = yield* Counter.make
      let sections = 0
      const section = Effect.andThen(
        counter.increment,
        Effect.sync(() => sections++)
      ).pipe(Lock.withLock(name))
      const clients = yield* Effect.replicateEffect(Layer.build(locks()), count)
      yield* Effect.forEach(clients, (client) =>
        Effect.forkScoped(Effect.provideContext(Effect.repeat(section, Schedule.forever), client))
      )
      for (let turn = 1; turn <= 10; turn++) {
        const before = sections
        yield* soon(
          `Java's turn ${turn}`,
          java.thread("one").run("lock", name, "count", { port: counter.port, times: 1 })
        )
        yield* soon(
          `a section of ours after Java's turn ${turn}`,
          Effect.repeat(Effect.sleep(5), { until: () => sections > before })
        )
      }
      assert.isAbove(sections, 10)
    })
  }
})
