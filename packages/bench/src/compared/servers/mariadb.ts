import { createConnection, type RowDataPacket } from "mysql2/promise"
import { mariadbOptions } from "../systems/mariadb.ts"
import type { Server } from "./Server.ts"
import { findProgram, freePorts, serverDirectory, startServer, systemPrograms } from "./serverProcess.ts"

const programs = async () => ({
  server: await findProgram("mariadbd", systemPrograms),
  install: await findProgram("mariadb-install-db", systemPrograms)
})

const mariadb = (setting: string, settings: ReadonlyArray<string>): Server => ({
  setting,
  missing: async () =>
    Object.values(await programs()).includes(undefined)
      ? "there is no MariaDB here: apt-get install mariadb-server"
      : undefined,
  start: async () => {
    const { install, server } = await programs()
    const directory = await serverDirectory("mariadb")
    const data = `--datadir=${directory}/data`
    const [port] = await freePorts(1)
    const { pid, stop } = await startServer({
      prepare: [install!, "--no-defaults", data, "--auth-root-authentication-method=normal", "--skip-test-db"],
      program: server!,
      directory,
      args: [
        ...["--no-defaults", data, `--port=${port}`, "--bind-address=127.0.0.1", "--skip-name-resolve"],
        ...[`--socket=${directory}/socket`, `--pid-file=${directory}/pid`, ...settings]
      ],
      isReady: async () => (await createConnection(mariadbOptions(port!, "mysql"))).end()
    })
    const client = await createConnection(mariadbOptions(port!, "mysql"))
    await client.query("CREATE DATABASE locks")
    await client.query(
      "CREATE TABLE locks.leases (name VARCHAR(255) PRIMARY KEY, owner VARCHAR(64) NOT NULL, expires_at DATETIME(6) NOT NULL) ENGINE=InnoDB"
    )
    const [rows] = await client.query<Array<RowDataPacket>>("SELECT VERSION() AS version")
    return {
      version: `MariaDB ${String(rows[0]!["version"]).split("-")[0]}`,
      place: { system: "mariadb", port: port!, otherPorts: [], processes: [pid] },
      clear: async () => {
        await client.query("DELETE FROM locks.leases")
      },
      stop: async () => {
        client.destroy()
        await stop()
      }
    }
  }
})

export const mariadbDurable = mariadb("`innodb_flush_log_at_trx_commit=1`", ["--innodb-flush-log-at-trx-commit=1"])
export const mariadbFast = mariadb("`innodb_flush_log_at_trx_commit=0`", [
  "--innodb-flush-log-at-trx-commit=0",
  "--innodb-doublewrite=0"
])
