import * as Effect from "effect/Effect"
import type { LockClient } from "../../client/LockClient.ts"
import type { PreparedAcquire } from "../AnyLock.ts"
import { PreparedLockAcquire } from "../LockImpl.ts"

/** Clients that have logged it. */
const noted = new WeakSet<LockClient>()

/** Logs once per client that the members of a MultiLock are in different slots of a cluster. */
export const noteSpreadSlots = (lock: string, members: ReadonlyArray<PreparedAcquire>): Effect.Effect<void> => {
  const [first] = members
  if (!(first instanceof PreparedLockAcquire) || noted.has(first.client)) return Effect.void
  const { client } = first
  const slotOf = (member: PreparedLockAcquire<unknown>) => client.store.slot(member.keys.lock)
  const isSpread = members.some(
    (member) => member instanceof PreparedLockAcquire && member.client === client && slotOf(member) !== slotOf(first)
  )
  if (!isSpread) return Effect.void
  noted.add(client)
  return Effect.annotateLogs(
    Effect.logInfo(
      `The members of the MultiLock ${JSON.stringify(lock)} are in different slots of the cluster, so one command cannot acquire them at once. ` +
        `A hash tag that their names share puts them into one slot: {orders}:1 and {orders}:2.`
    ),
    { warning: "slots" }
  )
}
