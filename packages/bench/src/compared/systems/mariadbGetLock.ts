import { type Connection, createConnection } from "mysql2/promise"
import type { Library } from "../../Candidate.ts"
import { mariadbOptions } from "./mariadb.ts"
import { inSessions } from "./sessions.ts"

const year = 31_536_000

/** `GET_LOCK`: a name that a connection holds, without any table. */
export const candidate: Library = {
  insideScripts: [],
  open: async ({ port }) =>
    inSessions<Connection>({
      open: () => createConnection(mariadbOptions(port, "locks")),
      take: async (connection, name) => {
        await connection.execute("SELECT GET_LOCK(?, ?)", [name, year])
        return () => connection.execute("SELECT RELEASE_LOCK(?)", [name])
      }
    })
}
