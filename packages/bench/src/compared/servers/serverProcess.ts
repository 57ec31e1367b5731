import { spawn } from "node:child_process"
import { constants } from "node:fs"
import { access, chown, mkdtemp, readdir, rm } from "node:fs/promises"
import { createServer, type AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { delimiter, join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import type { Place } from "../../Place.ts"
import type { RunningServer } from "./Server.ts"

const readyWithinMillis = 60_000

/** Some servers refuse to run as root: they run as `nobody`. */
const nobody = 65_534
const asNobody = process.getuid?.() === 0 ? { uid: nobody, gid: nobody } : undefined

/**
 * The server's parent, and the end of its directory. Its standard input is held open by our process and never written to: it
 * ends when our process is gone, however it died. The signal is repeated, as a server that is just starting may ignore it.
 */
const guard = `
exec 3<&0 </dev/null
dir=$1 signal=$2
shift 2
cd "$dir" || exit 126
"$@" 3<&- >&2 &
server=$!
( read -r _ <&3; while kill -"$signal" "$server"; do sleep 1; done ) >/dev/null 2>&1 &
lifeline=$!
echo "$server"
exec >/dev/null 2>&1 3<&-
wait "$server"
kill -KILL "$lifeline"
wait
cd / && rm -rf "$dir"
`

/** Looks for a program on the PATH and in these directories; the first one found. */
export const findProgram = async (
  name: string,
  directories: ReadonlyArray<string> = []
): Promise<string | undefined> => {
  for (const directory of [...(process.env["PATH"] ?? "").split(delimiter), ...directories]) {
    const path = join(directory, name)
    try {
      await access(path, constants.X_OK)
      return path
    } catch {
      // not here
    }
  }
  return undefined
}

/** A directory for a server's files, which the server's process removes at its end. */
export const serverDirectory = async (name: string): Promise<string> => {
  const directory = await mkdtemp(join(tmpdir(), `${name}.`))
  if (asNobody !== undefined) await chown(directory, asNobody.uid, asNobody.gid)
  return directory
}

/** Ports of 127.0.0.1 that were free a moment ago. */
export const freePorts = async (count: number): Promise<ReadonlyArray<number>> => {
  const servers = await Promise.all(
    Array.from(
      { length: count },
      () =>
        new Promise<ReturnType<typeof createServer>>((resolve, reject) => {
          const server = createServer()
          server.once("error", reject)
          server.listen(0, "127.0.0.1", () => resolve(server))
        })
    )
  )
  return Promise.all(
    servers.map(
      (server) =>
        new Promise<number>((resolve) => {
          const { port } = server.address() as AddressInfo
          server.close(() => resolve(port))
        })
    )
  )
}

export interface ServerProcess {
  readonly pid: number
  /** Completes when it is gone and its directory removed. */
  readonly stop: () => Promise<void>
}

/** Members that serve together, until they are stopped; each run of the benchmark uses names of its own there. */
export const ensemble = (
  system: Place["system"],
  version: string,
  [port, ...otherPorts]: ReadonlyArray<number>,
  members: ReadonlyArray<ServerProcess>
): RunningServer => ({
  version,
  place: { system, port: port!, otherPorts, processes: members.map(({ pid }) => pid) },
  clear: async () => {},
  stop: async () => {
    await Promise.all(members.map(({ stop }) => stop()))
  }
})

/** Starts a server in its directory, and waits until `isReady` succeeds. It ends with our process at the latest. */
export const startServer = async (server: {
  /** What fills the directory beforehand, and its arguments. */
  readonly prepare?: ReadonlyArray<string>
  readonly program: string
  readonly args: ReadonlyArray<string>
  readonly directory: string
  /** What ends it at once. Default: KILL. */
  readonly signal?: "KILL" | "QUIT"
  readonly isReady: () => Promise<unknown>
}): Promise<ServerProcess> => {
  const { args, directory, isReady, prepare, program, signal = "KILL" } = server
  const command = [program, ...args]
  if (prepare !== undefined) {
    const first = prepare.map((part) => `'${part}'`).join(" ")
    command.unshift("/bin/sh", "-c", `${first} && exec "$@"`, "sh")
  }
  // a session of its own: Ctrl-C reaches us, and ends the server through us
  const shell = spawn("/bin/sh", ["-c", guard, "sh", directory, signal, ...command], {
    ...asNobody,
    // `nobody` has no home
    env: { ...process.env, HOME: directory },
    detached: true,
    stdio: "pipe"
  })
  let output = ""
  let isOver = false
  shell.stdin.on("error", () => {})
  shell.stderr.setEncoding("utf8").on("data", (text: string) => {
    output = (output + text).slice(-2000)
  })
  const over = new Promise<void>((resolve) => {
    shell.on("close", () => {
      isOver = true
      // in case the shell could not
      rm(directory, { recursive: true, force: true }).then(resolve, resolve)
    })
  })
  const pid = await new Promise<number>((resolve, reject) => {
    shell.stdout.setEncoding("utf8").once("data", (line: string) => resolve(Number(line)))
    shell.on("error", reject)
    void over.then(() => reject(new Error(`${program} could not be started: ${output.trim()}`)))
  })
  const stop = async () => {
    // ends its standard input
    shell.stdin.end()
    await over
  }
  const until = performance.now() + readyWithinMillis
  for (;;) {
    try {
      await isReady()
      return { pid, stop }
    } catch (error) {
      if (isOver) throw new Error(`${program} ended: ${output.trim().split("\n").at(-1) ?? ""}`, { cause: error })
      if (performance.now() > until) {
        await stop()
        throw new Error(`${program} was not ready in ${readyWithinMillis / 1000} s`, { cause: error })
      }
      await sleep(100)
    }
  }
}

/** Debian's directories of programs that are not on every user's PATH. */
export const systemPrograms = ["/usr/sbin", "/usr/local/sbin"]

/** The directories of programs of which Debian has several versions, the newest first. */
export const versionedPrograms = async (parent: string): Promise<ReadonlyArray<string>> =>
  (await readdir(parent).catch(() => []))
    .sort((a, b) => Number(b) - Number(a))
    .map((version) => join(parent, version, "bin"))
