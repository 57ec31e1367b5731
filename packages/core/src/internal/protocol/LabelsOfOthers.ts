/**
 * The labels of other clients, by which people recognise the process of an owner. Remembered for a while, so that a look at many locks
 * asks once for each client.
 */
import * as Effect from "effect/Effect"
import type { LockStore } from "../../LockStore.ts"
import { clientLabelKey } from "../store/keys.ts"
import { label } from "../store/operations/client.ts"

const knownMillis = 60_000
/** A client tells its label a second after it was first granted something. */
const unknownMillis = 2000
const mostRemembered = 1000

/** Owners are `<client>:<number>`, as in Redisson. */
export const clientOf = (owner: string): string | undefined =>
  /^([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}):/.exec(owner)?.[1]

interface AskingClient {
  readonly clientId: string
  readonly store: LockStore["Service"]
  readonly options: { readonly keyPrefix: string; readonly label: string }
  readonly now: () => number
}

export class LabelsOfOthers {
  readonly #client: AskingClient
  readonly #remembered = new Map<string, { readonly label: string | undefined; readonly until: number }>()

  constructor(client: AskingClient) {
    this.#client = client
  }

  /** The label of an owner's client; undefined if it has told none, or Redis does not tell. */
  of(owner: string): Effect.Effect<string | undefined> {
    return Effect.suspend(() => {
      const { clientId, now, options, store } = this.#client
      const other = clientOf(owner)
      if (other === undefined) return Effect.undefined
      if (other === clientId) return Effect.succeed(options.label === "" ? undefined : options.label)
      const remembered = this.#remembered.get(other)
      if (remembered !== undefined && remembered.until > now()) return Effect.succeed(remembered.label)
      return store.run(label(clientLabelKey(options.keyPrefix, other))).pipe(
        Effect.map((label) =>
          label === "" ? this.#remember(other, undefined, unknownMillis) : this.#remember(other, label, knownMillis)
        ),
        // such as a user that may not read it: it would be refused again
        Effect.catch(({ isTransient }) =>
          Effect.sync(() => this.#remember(other, undefined, isTransient ? unknownMillis : knownMillis))
        )
      )
    })
  }

  #remember(client: string, label: string | undefined, millis: number): string | undefined {
    this.#remembered.delete(client)
    this.#remembered.set(client, { label, until: this.#client.now() + millis })
    if (this.#remembered.size > mostRemembered) {
      const [oldest] = this.#remembered.keys()
      this.#remembered.delete(oldest!)
    }
    return label
  }
}
