/**
 * What a client does for others while it holds or waits: it stores the label by which people recognise it, in the background, and only once
 * it has held or waited for a moment.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { clientLabelKey } from "../store/keys.ts"
import { isFinal } from "../store/failures.ts"
import { removeLabel, setLabel } from "../store/operations/client.ts"
import type { LockClient } from "./LockClient.ts"

/** Nobody asks who held a lock for less. */
const momentMillis = 1000

/** The life of a stored label: it outlives a client that dies, or cannot reach Redis when it closes. */
const lifeMillis = 3_600_000

export class Presence {
  readonly #client: LockClient
  /** Whether a fiber stores the label, or the server has refused it: it would log each further attempt. */
  #isLabelling = false
  /** Whether Redis may have the label, also after the client has held and waited. */
  #mayBeStored = false

  constructor(client: LockClient) {
    this.#client = client
  }

  /** The client holds or waits from now on. */
  begin(): void {
    const { fork, isClosing, options } = this.#client
    if (isClosing || this.#isLabelling || options.label === "") return
    this.#isLabelling = true
    fork(Effect.gen(() => this.#label()))
  }

  /** Ends once the client neither holds nor waits, or for good if its user may not store the label. A failure costs only the label. */
  *#label(): Effect.fn.Return<void> {
    const { clientId, leases, lines, options, run } = this.#client
    const command = setLabel(clientLabelKey(options.keyPrefix, clientId), options.label, lifeMillis)
    yield* Effect.sleep(momentMillis)
    while (leases.size > 0 || lines.size > 0) {
      this.#mayBeStored = true
      const stored = yield* Effect.result(run(command))
      if (Result.isFailure(stored) && isFinal(stored.failure)) {
        this.#mayBeStored = false
        return yield* Effect.logDebug(
          "Others cannot see the label of this client: it could not be stored.",
          stored.failure
        )
      }
      yield* Effect.sleep(Result.isSuccess(stored) ? lifeMillis / 3 : momentMillis)
    }
    this.#isLabelling = false
  }

  /** The client is closing: one attempt to remove the label, which expires by itself. */
  get end(): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (!this.#mayBeStored) return Effect.void
      this.#mayBeStored = false
      const { clientId, options, run } = this.#client
      return Effect.ignore(run(removeLabel(clientLabelKey(options.keyPrefix, clientId))))
    })
  }
}
