/**
 * Whether a holder that is told of a loss has lost anything.
 */
import type { LockLost } from "effect-redis-lock"
import type { Server } from "./network.ts"

/** Whether a server still keeps for an owner what it holds. */
const keeps = ({ db }: Server, { lock, owner }: LockLost): boolean => {
  if (db.type(lock) === "hash") {
    const fields = db.get(lock, "hash")!
    const isLive = !fields.has("mode") || db.exists(`{${lock}}:${owner}:rwlock_timeout:1`)
    return fields.has(`${owner}:write`) || (fields.has(owner) && isLive)
  }
  const ids = db.get(`{${lock}}:timeout`, "zset")
  return ids !== undefined && owner.split(",").every((id) => (ids.get(id) ?? 0) > db.timeMicros() / 1000)
}

/** Whether most of the servers still keep what somebody else is said to have now. */
export const isGroundless = (servers: ReadonlyArray<Server>, lost: LockLost): boolean =>
  lost.reason === "NotOwner" && 2 * servers.filter((server) => keeps(server, lost)).length > servers.length
