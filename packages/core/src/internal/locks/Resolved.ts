import type { LockClient } from "../client/LockClient.ts"
import type { LockKeys } from "../store/keys.ts"

/** The client that serves a lock, semaphore or latch, and the keys that it has there. */
export interface Resolved {
  readonly client: LockClient
  readonly keys: LockKeys
}
