import { createConnection, type ResultSetHeader } from "mysql2/promise"
import type { Library } from "../../Candidate.ts"
import { owners, polling } from "../../candidates/polling.ts"
import { mariadbOptions } from "./mariadb.ts"

/** Takes the row unless somebody else has it whose time is not over. */
const acquire = `
INSERT INTO leases (name, owner, expires_at) VALUES (?, ?, NOW(6) + INTERVAL ? MICROSECOND)
ON DUPLICATE KEY UPDATE
  owner = IF(expires_at < NOW(6), VALUES(owner), owner),
  expires_at = IF(owner = VALUES(owner), VALUES(expires_at), expires_at)`

const renew = "UPDATE leases SET expires_at = NOW(6) + INTERVAL ? MICROSECOND WHERE name = ? AND owner = ?"
const release = "DELETE FROM leases WHERE name = ? AND owner = ?"

const isDeadlock = (error: unknown): boolean => (error as { readonly code?: string }).code === "ER_LOCK_DEADLOCK"

/** A row of a table with a unique name, an owner and an expiry, by the server's clock. */
export const candidate: Library = {
  insideScripts: [],
  open: async ({ leaseMillis, port }) => {
    const connection = await createConnection(mariadbOptions(port, "locks"))
    /** How many rows a statement has changed. InnoDB ends one of two statements that wait for each other. */
    const changed = async (sql: string, values: ReadonlyArray<string | number>): Promise<number> => {
      for (;;) {
        try {
          const [{ affectedRows }] = await connection.execute<ResultSetHeader>(sql, [...values])
          return affectedRows
        } catch (error) {
          if (!isDeadlock(error)) throw error
        }
      }
    }
    const leaseMicros = leaseMillis * 1000
    return polling(
      {
        nextOwner: owners(),
        tryAcquire: async (_kind, name, owner) => (await changed(acquire, [name, owner, leaseMicros])) > 0,
        renew: async (name, owner) => (await changed(renew, [leaseMicros, name, owner])) > 0,
        release: async (_kind, name, owner) => {
          if ((await changed(release, [name, owner])) === 0) throw new Error(`lost ${name}`)
        }
      },
      leaseMillis
    )
  }
}
