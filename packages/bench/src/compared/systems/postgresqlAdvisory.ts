import { Client } from "pg"
import type { Library } from "../../Candidate.ts"
import { postgresqlOptions } from "./postgresql.ts"
import { inSessions } from "./sessions.ts"

const lock = { name: "lock", text: "SELECT pg_advisory_lock(hashtextextended($1, 0))" }
const unlock = { name: "unlock", text: "SELECT pg_advisory_unlock(hashtextextended($1, 0))" }

/** `pg_advisory_lock`: a number that a connection holds, without any table. */
export const candidate: Library = {
  insideScripts: [],
  open: async ({ port }) =>
    inSessions({
      open: async () => {
        const client = new Client(postgresqlOptions(port))
        await client.connect()
        return client
      },
      take: async (client, name) => {
        await client.query({ ...lock, values: [name] })
        return () => client.query({ ...unlock, values: [name] })
      }
    })
}
