/**
 * What a client does for others while it holds or waits: it stores the label by which people recognise it, and subscribes to the channel
 * that notifies it of forced releases. Both in the background, and only once it has held or waited for a moment.
 */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Result from "effect/Result"
import { clientLabelKey } from "../store/keys.ts"
import { removeLabel, setLabel } from "../store/operations/client.ts"
import { runStream } from "../store/startable.ts"
import { reconnecting } from "../time/clock.ts"
import type { LockClient } from "./LockClient.ts"

/** Nobody asks who held a lock for less, and a section that ends sooner is not worth a connection for messages. */
const momentMillis = 1000

/** The life of a stored label: it outlives a client that dies, or cannot reach Redis when it closes. */
const lifeMillis = 3_600_000

/** Between two looks at all that is held: many forced releases, or a flood of messages, must not flood the connection. */
const restMillis = 100

/** How often a subscribed client checks whether it still needs to be. */
const idleMillis = 10_000

export class Presence {
  readonly #client: LockClient
  /** Whether a fiber stores the label, or the server has refused it. */
  #isLabelling = false
  /** The same for the subscription. A quorum's client has none: it would need one at each member. */
  #isListening = false
  /** Whether Redis may have the label, also after the client has held and waited. */
  #mayBeStored = false

  constructor(client: LockClient) {
    this.#client = client
  }

  /** The client holds or waits from now on. */
  begin(): void {
    const { fork, isClosing, isQuorum, options } = this.#client
    if (isClosing) return
    // after a refusal they stay set: the server would log each further attempt
    if (!this.#isLabelling && options.label !== "") {
      this.#isLabelling = true
      const noteSent = () => void (this.#mayBeStored = true)
      fork(
        Effect.map(labelWhileInUse(this.#client, noteSent), (isRefused) => {
          this.#isLabelling = isRefused
          if (isRefused) this.#mayBeStored = false
        })
      )
    }
    if (!this.#isListening && !isQuorum) {
      this.#isListening = true
      fork(Effect.map(listenWhileHolding(this.#client), (isRefused) => void (this.#isListening = isRefused)))
    }
  }

  /** The client is closing: one attempt to remove the label, which expires by itself. */
  get end(): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (!this.#mayBeStored) return Effect.void
      this.#mayBeStored = false
      const { clientId, options, store } = this.#client
      return Effect.ignore(store.run(removeLabel(clientLabelKey(options.keyPrefix, clientId))))
    })
  }
}

/** Ends once the client neither holds nor waits, or with `true` if its user may not store the label. A failure costs only the label. */
const labelWhileInUse = Effect.fnUntraced(function* (client: LockClient, noteSent: () => void) {
  const { clientId, options, store } = client
  let pause = momentMillis
  while (true) {
    yield* Effect.sleep(pause)
    if (client.leases.isEmpty && client.lines.size === 0) return false
    const command = setLabel(clientLabelKey(options.keyPrefix, clientId), options.label, lifeMillis)
    noteSent()
    const stored = yield* Effect.result(store.run(command))
    if (Result.isFailure(stored) && !stored.failure.isTransient) {
      yield* Effect.logDebug("Others cannot see the label of this client: it could not be stored.", stored.failure)
      return true
    }
    pause = Result.isSuccess(stored) ? lifeMillis / 3 : momentMillis
  }
})

/** Ends once the client holds nothing, or with `true` if its user may not subscribe. It then notices a loss with the next renewal. */
const listenWhileHolding = Effect.fnUntraced(function* (client: LockClient) {
  yield* Effect.sleep(momentMillis)
  while (client.watchdog.size > 0) {
    if (!holdsForAMoment(client)) yield* Effect.sleep(momentMillis)
    else if (yield* Effect.raceFirst(listen(client), untilIdle(client))) return true
  }
  return false
})

const holdsForAMoment = ({ now, watchdog }: LockClient): boolean => {
  const since = now() - momentMillis
  return watchdog.leases.some(({ acquiredAt }) => acquiredAt <= since)
}

const untilIdle = Effect.fnUntraced(function* (client: LockClient) {
  do yield* Effect.sleep(idleMillis)
  while (holdsForAMoment(client))
  return false
})

/** Verifies what is held after each message. Ends only if the server refuses the subscription. */
const listen = (client: LockClient): Effect.Effect<true> =>
  Effect.suspend(() => {
    const notified = Latch.makeUnsafe(false)
    return Effect.raceFirst(subscribed(client, notified), Effect.forever(verifyOnceNotified(client, notified)))
  })

const subscribed = (client: LockClient, notified: Latch.Latch): Effect.Effect<true> => {
  const channel = clientLabelKey(client.options.keyPrefix, client.clientId)
  let wasSubscribed = false
  const subscription = Effect.suspend(() =>
    runStream(client.store.subscribe(channel), (signal) => {
      // messages may have been missed before a subscription is renewed
      if (signal._tag === "Message" || wasSubscribed) notified.openUnsafe()
      wasSubscribed = true
    })
  )
  return subscription.pipe(
    // a stream that ends is as good as a lost connection
    Effect.andThen(Effect.sleep(momentMillis)),
    Effect.forever,
    Effect.retry({ schedule: reconnecting, while: ({ isTransient }) => isTransient }),
    Effect.catch((error) => Effect.logDebug("This client cannot be notified of forced releases.", error)),
    Effect.as(true)
  )
}

/** One look serves all messages that came before it. */
const verifyOnceNotified = Effect.fnUntraced(function* (client: LockClient, notified: Latch.Latch) {
  yield* notified.await
  notified.closeUnsafe()
  yield* Fiber.awaitAll(client.watchdog.verifyAll())
  yield* Effect.sleep(restMillis)
})
