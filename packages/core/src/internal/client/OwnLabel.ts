/**
 * Tells others by which name people know this client: in Redis, in the background, and only if it holds or waits for longer than a moment.
 */
import * as Effect from "effect/Effect"
import type { Fiber } from "effect/Fiber"
import * as Result from "effect/Result"
import type { LockStore } from "../../LockStore.ts"
import { clientLabelKey } from "../store/keys.ts"
import { setLabel } from "../store/operations/client.ts"

/** Nobody asks who held a lock for less. */
const momentMillis = 1000

/** It may outlive the client, as leases do. */
const lifeMillis = 3_600_000

export interface LabelledClient {
  readonly clientId: string
  readonly store: LockStore["Service"]
  readonly options: { readonly keyPrefix: string; readonly label: string }
  readonly isClosing: boolean
  /** Whether it holds anything, or waits. */
  readonly isInUse: boolean
  readonly fork: (effect: Effect.Effect<void>) => Fiber<void>
}

export class OwnLabel {
  readonly #client: LabelledClient
  #isTold = false

  constructor(client: LabelledClient) {
    this.#client = client
  }

  /** The client holds or waits from now on. */
  tell(): void {
    const { fork, isClosing, options } = this.#client
    if (this.#isTold || isClosing || options.label === "") return
    this.#isTold = true
    fork(
      Effect.map(tellWhileInUse(this.#client), (isRefused) => {
        this.#isTold = isRefused
      })
    )
  }
}

/** Ends once the client neither holds nor waits, or its user may not tell: true. A failure costs nothing but the label. */
const tellWhileInUse = Effect.fnUntraced(function* (client: LabelledClient) {
  const { clientId, options, store } = client
  let pause = momentMillis
  while (true) {
    yield* Effect.sleep(pause)
    if (!client.isInUse) return false
    const command = setLabel(clientLabelKey(options.keyPrefix, clientId), options.label, lifeMillis)
    const told = yield* Effect.result(store.run(command))
    if (Result.isFailure(told) && !told.failure.isTransient) {
      yield* Effect.logDebug("Others cannot see the label of this client: it could not be stored.", told.failure)
      return true
    }
    pause = Result.isSuccess(told) ? lifeMillis / 3 : momentMillis
  }
})
