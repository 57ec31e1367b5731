/**
 * Elections that a majority of servers decides.
 */
import { assert, it } from "@effect/vitest"
import { Effect, Fiber, Option, Schema } from "effect"
import { LeaderElection } from "effect-redis-lock"
import { background } from "../kit/background.ts"
import { as, quorumOf, testStores } from "../kit/testStore.ts"

const options = { fallbackInterval: "1 second" } as const

it.effect("A quorum elects one leader, believes what it proclaims, and elects the next one when it resigns", () =>
  Effect.gen(function* () {
    const stores = yield* testStores(3)
    const [one, other] = [yield* quorumOf(stores, options), yield* quorumOf(stores, options)]
    const election = LeaderElection.make("election", { value: Schema.String })
    const first = yield* as(one)(LeaderElection.campaign(election, { proclaim: "a" }))
    const second = yield* background(as(other)(LeaderElection.campaign(election, { proclaim: "c" })))
    const value = Effect.map(
      as(other)(LeaderElection.leader(election)),
      Option.flatMap(({ value }) => value)
    )
    assert.deepStrictEqual(yield* value, Option.some("a"))
    stores[0]!.isDown = true
    yield* first.proclaim("b")
    stores[0]!.isDown = false
    stores[1]!.isDown = true
    // one of the two that are left has the older value
    assert.deepStrictEqual(yield* value, Option.some("b"))
    stores[1]!.isDown = false
    yield* first.resign
    const { term } = yield* Fiber.join(second)
    assert.isAbove(Number(term), Number(first.term))
    assert.deepStrictEqual(yield* value, Option.some("c"))
  }).pipe(Effect.scoped)
)
