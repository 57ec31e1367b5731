import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { LockState } from "../Lock.ts"
import type { LockStoreError } from "../LockError.ts"
import type { LockKeys } from "./keys.ts"
import type { LockClient } from "./LockClient.ts"

/** Redisson's owners: a client's UUID and an id. Nothing else that lives in a hash looks like it. */
const owner = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}:.+$/

/** What Redis knows of a lock, or nothing where the key is free or is no lock. */
export const inspect = (
  client: LockClient,
  keys: LockKeys,
  name: string
): Effect.Effect<LockState | undefined, LockStoreError> =>
  Effect.map(client.store.run("lock/inspect", [keys.lock, keys.token], []), (reply) => {
    const [remaining, token, fields] = reply as readonly [number, string | null, ReadonlyArray<string>]
    if (remaining === -2) return undefined
    const holders: Array<{ readonly owner: string; readonly holdCount: number }> = []
    for (let i = 0; i < fields.length; i += 2) {
      const holdCount = Number(fields[i + 1])
      if (!owner.test(fields[i]!) || !Number.isSafeInteger(holdCount)) return undefined
      holders.push({ owner: fields[i]!, holdCount })
    }
    return {
      name,
      holders,
      remaining: remaining === -1 ? undefined : Duration.millis(remaining),
      token: token === null ? undefined : BigInt(token)
    }
  })
