import * as Stream from "effect/Stream"
import type { LockState } from "../../Lock.ts"
import type { LockStoreError } from "../../LockError.ts"
import type { LockClient } from "../client/LockClient.ts"
import { inspect } from "../protocol/inspect.ts"
import { LockKeys } from "../store/keys.ts"

/** The locks that are held and whose name matches a glob pattern, each once. */
export const listHeld = (client: LockClient, pattern: string): Stream.Stream<LockState, LockStoreError> => {
  const { keyPrefix } = client.options
  const seen = new Set<string>()
  return client.store.scan(keyPrefix.replace(/[[\]*?\\^]/g, "\\$&") + pattern).pipe(
    Stream.mapEffect((key) => inspect(client, new LockKeys(key), key.slice(keyPrefix.length)), { concurrency: 16 }),
    Stream.filter((state): state is LockState => {
      if (state === undefined || seen.has(state.name)) return false
      seen.add(state.name)
      return true
    })
  )
}
