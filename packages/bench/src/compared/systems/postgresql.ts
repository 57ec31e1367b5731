import type { ClientConfig } from "pg"

/** A connection of the only user there is. */
export const postgresqlOptions = (port: number): ClientConfig => ({
  host: "127.0.0.1",
  port,
  user: "postgres",
  database: "postgres"
})
