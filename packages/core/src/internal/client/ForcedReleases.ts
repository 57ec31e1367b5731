/**
 * Hears that somebody has taken a lock from this client by force, so that its section ends at once and not with the next renewal. Only
 * a client that has held something for a moment listens: a connection of its own for messages is worth more than a section that ends soon.
 */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import type { LockStore } from "../../LockStore.ts"
import { clientLabelKey } from "../store/keys.ts"
import { runStream } from "../store/startable.ts"
import { reconnecting } from "../time/schedules.ts"

/** Whoever holds for less is not taken anything by hand. */
const momentMillis = 1000

/** Between two looks at all that is held: whoever takes many locks, or floods the channel, must not flood the connection as well. */
const restMillis = 100

/** How often a client that listens looks whether it still needs to. */
const idleMillis = 10_000

export interface TakenFrom {
  readonly clientId: string
  readonly store: LockStore["Service"]
  readonly options: { readonly keyPrefix: string }
  readonly isQuorum: boolean
  readonly isClosing: boolean
  readonly now: () => number
  readonly watchdog: {
    readonly size: number
    readonly watchesSince: (millis: number) => boolean
    readonly verifyAll: () => ReadonlyArray<Fiber.Fiber<void>>
  }
  readonly fork: (effect: Effect.Effect<void>) => Fiber.Fiber<void>
}

export class ForcedReleases {
  readonly #client: TakenFrom
  #isAwake = false

  constructor(client: TakenFrom) {
    this.#client = client
  }

  /** The client may hold something from now on. */
  heed(): void {
    const { fork, isClosing, isQuorum } = this.#client
    if (this.#isAwake || isClosing || isQuorum) return
    this.#isAwake = true
    fork(
      Effect.map(heedWhileHolding(this.#client), () => {
        this.#isAwake = false
      })
    )
  }
}

const heedWhileHolding = Effect.fnUntraced(function* (client: TakenFrom) {
  yield* Effect.sleep(momentMillis)
  while (client.watchdog.size > 0) {
    if (client.watchdog.watchesSince(client.now() - momentMillis))
      yield* Effect.raceFirst(listen(client), untilIdle(client))
    else yield* Effect.sleep(momentMillis)
  }
})

/** Never ends. A user that may not listen learns of a loss with the next renewal, as everybody does who was not told. */
const listen = (client: TakenFrom): Effect.Effect<never> =>
  Effect.suspend(() => {
    const told = Latch.makeUnsafe(false)
    return Effect.raceFirst(hear(client, told), Effect.forever(verifyOnceTold(client, told)))
  })

const hear = (client: TakenFrom, told: Latch.Latch): Effect.Effect<never> => {
  const channel = clientLabelKey(client.options.keyPrefix, client.clientId)
  let hasListened = false
  const subscription = Effect.suspend(() =>
    runStream(client.store.subscribe(channel), (signal) => {
      // messages may have been missed before a subscription is renewed
      if (signal._tag === "Message" || hasListened) told.openUnsafe()
      hasListened = true
    })
  )
  return subscription.pipe(
    // a stream that ends is as good as a lost connection
    Effect.andThen(Effect.sleep(momentMillis)),
    Effect.forever,
    Effect.retry({ schedule: reconnecting, while: ({ isTransient }) => isTransient }),
    Effect.catch((error) => Effect.logDebug("This client cannot hear that a lock is taken from it by force.", error)),
    Effect.andThen(Effect.never)
  )
}

/** One look serves all messages that came before it. */
const verifyOnceTold = Effect.fnUntraced(function* (client: TakenFrom, told: Latch.Latch) {
  yield* told.await
  told.closeUnsafe()
  yield* Fiber.awaitAll(client.watchdog.verifyAll())
  yield* Effect.sleep(restMillis)
})

const untilIdle = Effect.fnUntraced(function* (client: TakenFrom) {
  do yield* Effect.sleep(idleMillis)
  while (client.watchdog.watchesSince(client.now() - momentMillis))
})
