import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { LockState } from "../../LockState.ts"
import { LockStoreError } from "../../LockError.ts"
import type { LockKeys } from "../store/keys.ts"
import * as lock from "../store/operations/lock.ts"
import type { ProtocolClient } from "./ProtocolClient.ts"
import type { Mode } from "./LockProtocol.ts"

/** Redisson's owners: a client's UUID and an id. No other field of a hash has this form. */
const ownerField = /^([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}:.+?)(:write)?$/

/**
 * The state in Redis of a lock of any kind, or undefined if the key is free or is no lock.
 */
export const inspect = (
  client: ProtocolClient,
  keys: LockKeys,
  name: string
): Effect.Effect<LockState | undefined, LockStoreError> =>
  Effect.map(client.store.run(lock.inspect(keys)), ([remaining, token, fields]) => {
    if (remaining === -2) return undefined
    const holders: Array<LockState["holders"][number]> = []
    const isReadWrite = fields.includes("mode")
    for (let i = 0; i < fields.length; i += 2) {
      if (fields[i] === "mode") continue
      const match = ownerField.exec(fields[i]!)
      const holdCount = Number(fields[i + 1])
      if (match === null || !Number.isSafeInteger(holdCount)) return undefined
      const [, owner, write] = match
      const mode: Mode = !isReadWrite ? "exclusive" : write === undefined ? "read" : "write"
      holders.push({ owner: owner!, holdCount, mode })
    }
    return {
      name,
      holders,
      remaining: remaining === -1 ? undefined : Duration.millis(remaining),
      // any other value under the token's key is not a token
      token: token === null || !/^-?\d+$/.test(token) ? undefined : BigInt(token)
    }
  })

/**
 * The state in Redis of one side of a lock: its holders in a mode, or undefined if there are none. Fails with `WrongType`
 * if the name is a read-write lock and another kind was expected, or the other way round.
 */
export const inspectSide = (
  client: ProtocolClient,
  keys: LockKeys,
  name: string,
  mode: Mode
): Effect.Effect<LockState | undefined, LockStoreError> =>
  Effect.flatMap(inspect(client, keys, name), (state) => {
    if (state === undefined) return Effect.undefined
    if (state.holders.some((holder) => (holder.mode === "exclusive") !== (mode === "exclusive"))) {
      return Effect.fail(new LockStoreError({ operation: "lock/inspect", lock: name, reason: "WrongType" }))
    }
    const holders = state.holders.filter((holder) => holder.mode === mode)
    return Effect.succeed(holders.length === 0 ? undefined : { ...state, holders })
  })
