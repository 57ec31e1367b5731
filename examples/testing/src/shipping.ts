/**
 * Shipping orders: one instance at a time for each order, and a store that refuses what comes too late.
 */
import { Context, Data, Effect, Layer } from "effect"
import { Lock } from "effect-redis-lock"

/** The store has seen a higher token for this order. */
export class Outdated extends Data.TaggedError("Outdated")<{ readonly order: string; readonly token: bigint }> {}

/** The carrier that collects orders; it takes its time. */
export class Carrier extends Context.Service<Carrier, { readonly collect: (order: string) => Effect.Effect<void> }>()(
  "example/Carrier"
) {}

/** Where shipped orders are noted. */
export class Shipments extends Context.Service<
  Shipments,
  {
    readonly note: (order: string, token: bigint) => Effect.Effect<void, Outdated>
    readonly isShipped: (order: string) => Effect.Effect<boolean>
  }
>()("example/Shipments") {}

/** A store in memory that checks tokens, as the database does in examples/payment. */
export const layerShipments = Layer.sync(Shipments, () => {
  const tokens = new Map<string, bigint>()
  return Shipments.of({
    note: (order, token) =>
      Effect.suspend(() => {
        if ((tokens.get(order) ?? 0n) > token) return Effect.fail(new Outdated({ order, token }))
        tokens.set(order, token)
        return Effect.void
      }),
    isShipped: (order) => Effect.sync(() => tokens.has(order))
  })
})

/** Ships an order; "busy" if another instance has been at it for a minute. */
export const ship = Effect.fnUntraced(function* (order: string) {
  const name = `order:${order}`
  const work = Effect.gen(function* () {
    const { token } = yield* Lock.currentHolding(name)
    const carrier = yield* Carrier
    const shipments = yield* Shipments
    // by whoever held the lock before: a lock excludes, it does not deduplicate
    if (yield* shipments.isShipped(order)) return "shipped" as const
    yield* carrier.collect(order)
    yield* shipments.note(order, token)
    return "shipped" as const
  })
  return yield* work.pipe(
    Lock.withLock(name, { waitTime: "1 minute" }),
    Effect.catchTag("LockTimeout", () => Effect.succeed("busy" as const))
  )
})
