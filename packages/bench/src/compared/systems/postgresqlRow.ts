import { Client } from "pg"
import type { Library } from "../../Candidate.ts"
import { owners, polling } from "../../candidates/polling.ts"
import { postgresqlOptions } from "./postgresql.ts"

/** Takes the row unless somebody else has it whose time is not over. */
const acquire = {
  name: "acquire",
  text: `
INSERT INTO leases AS held (name, owner, expires_at) VALUES ($1, $2, clock_timestamp() + $3 * interval '1 millisecond')
ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, expires_at = excluded.expires_at
WHERE held.expires_at < clock_timestamp()`
}

const renew = {
  name: "renew",
  text: "UPDATE leases SET expires_at = clock_timestamp() + $3 * interval '1 millisecond' WHERE name = $1 AND owner = $2"
}

const release = { name: "release", text: "DELETE FROM leases WHERE name = $1 AND owner = $2" }

/** A row of a table with a unique name, an owner and an expiry, by the server's clock. */
export const candidate: Library = {
  insideScripts: [],
  open: async ({ leaseMillis, port }) => {
    const client = new Client(postgresqlOptions(port))
    await client.connect()
    const changed = async (
      statement: { readonly name: string; readonly text: string },
      values: ReadonlyArray<string | number>
    ): Promise<boolean> => (await client.query({ ...statement, values: [...values] })).rowCount === 1
    return polling(
      {
        nextOwner: owners(),
        tryAcquire: (_kind, name, owner) => changed(acquire, [name, owner, leaseMillis]),
        renew: (name, owner) => changed(renew, [name, owner, leaseMillis]),
        release: async (_kind, name, owner) => {
          if (!(await changed(release, [name, owner]))) throw new Error(`lost ${name}`)
        }
      },
      leaseMillis
    )
  }
}
