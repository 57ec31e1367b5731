import type { LockStore } from "../../LockStore.ts"
import type { ClientOptions } from "../options/ClientOptions.ts"

/** What a protocol needs of the client: it turns what is wanted into commands, and sends none. */
export interface ProtocolClient {
  /** A random UUID; owners are `<clientId>:<number>`, as in Redisson. */
  readonly clientId: string
  readonly store: LockStore["Service"]
  readonly options: ClientOptions
}
