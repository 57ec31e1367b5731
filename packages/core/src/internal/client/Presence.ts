/**
 * What a client does for others while it holds or waits: it stores the label by which people recognise it, in the background, and only once
 * it has held or waited for a moment.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { clientLabelKey } from "../store/keys.ts"
import { removeLabel, setLabel } from "../store/operations/client.ts"
import type { LockClient } from "./LockClient.ts"

/** Nobody asks who held a lock for less. */
const momentMillis = 1000

/** The life of a stored label: it outlives a client that dies, or cannot reach Redis when it closes. */
const lifeMillis = 3_600_000

export class Presence {
  readonly #client: LockClient
  /** Whether a fiber stores the label, or the server has refused it. */
  #isLabelling = false
  /** Whether Redis may have the label, also after the client has held and waited. */
  #mayBeStored = false

  constructor(client: LockClient) {
    this.#client = client
  }

  /** The client holds or waits from now on. */
  begin(): void {
    const { fork, isClosing, options } = this.#client
    // after a refusal it stays set: the server would log each further attempt
    if (isClosing || this.#isLabelling || options.label === "") return
    this.#isLabelling = true
    const noteSent = () => void (this.#mayBeStored = true)
    fork(
      Effect.map(labelWhileInUse(this.#client, noteSent), (isRefused) => {
        this.#isLabelling = isRefused
        if (isRefused) this.#mayBeStored = false
      })
    )
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
    if (client.leases.size === 0 && client.lines.size === 0) return false
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
