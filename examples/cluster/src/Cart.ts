/**
 * An entity: each cart lives in one runner of the cluster, which handles its messages one after the other.
 */
import { Effect, Schema } from "effect"
import { Entity } from "effect/cluster"
import { Rpc } from "effect/rpc"

export const Cart = Entity.make("Cart", [
  Rpc.make("Add", {
    payload: { article: Schema.String },
    success: Schema.Struct({ items: Schema.Int, at: Schema.Int })
  })
])

/** In memory alone: a cart that moves to another runner is empty there. Yours loads what it needs. */
export const layer = Cart.toLayer(
  Effect.gen(function* () {
    const { entityId } = yield* Entity.CurrentAddress
    const runner = yield* Entity.CurrentRunnerAddress
    const articles: Array<string> = []
    return {
      Add: ({ payload }) =>
        Effect.sync(() => {
          articles.push(payload.article)
          console.log(`runner ${runner.port}: ${payload.article} in the cart of ${entityId}`)
          return { items: articles.length, at: runner.port }
        })
    }
  })
)
