import type { LockStore } from "../../LockStore.ts"
import type { ClientOptions } from "../options/ClientOptions.ts"

/** The part of the client that a protocol needs: a protocol makes commands and sends none. */
export interface ProtocolClient {
  /** A random UUID; owners are `<clientId>:<number>`, as in Redisson. */
  readonly clientId: string
  readonly store: LockStore["Service"]
  readonly options: ClientOptions
}
