import type { ConnectionOptions } from "mysql2"

/** A connection of the only user there is. The flag makes the number of affected rows tell whether a row was changed. */
export const mariadbOptions = (port: number, database: string): ConnectionOptions => ({
  host: "127.0.0.1",
  port,
  user: "root",
  database,
  flags: ["-FOUND_ROWS"]
})
