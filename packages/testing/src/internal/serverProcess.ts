import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"
import { createServer } from "node:net"

/** A server process whose life ends with ours at the latest. */
export interface ServerProcess {
  readonly pid: number
  /** Sends a signal to the server; false when it is not running any more. */
  readonly signal: (name: "SIGKILL" | "SIGSTOP" | "SIGCONT") => boolean
  /** Completes when the server is gone and its directory removed, with the last lines that it wrote. */
  readonly exited: Effect.Effect<string>
}

/**
 * The server's parent. Standard input is the lifeline: our process holds the other end and never writes, so that end of
 * file means that our process is gone, however it died. A directory of its own keeps what a server may write there (a
 * replica's transfer file, nodes.conf) away from the working directory. Once the server runs, the shell itself writes
 * nowhere: when our process is gone, writing about a killed job would kill the shell itself, and the directory would stay.
 */
const script = `
exec 3<&0 </dev/null
dir=$(mktemp -d "\${TMPDIR:-/tmp}/redis-server.XXXXXX") && cd "$dir" || exit 126
"$@" 3<&- >&2 &
server=$!
( read -r _ <&3; kill -KILL "$server" ) >/dev/null 2>&1 &
lifeline=$!
echo "$server"
exec >/dev/null 2>&1 3<&-
wait "$server"
kill -KILL "$lifeline"
wait
cd / && rm -rf "$dir"
`

/** Enough for an error message; the rest of the server's log is not kept. */
const KEPT_OUTPUT = 4000

/** Starts a server under the guard of a shell; fails with the reason when there is no process at all. */
export const spawnServer = (binary: string, args: ReadonlyArray<string>): Effect.Effect<ServerProcess, string> =>
  Effect.callback<ServerProcess, string>((resume) => {
    // detached: a session of its own, so that Ctrl-C in the terminal reaches us and not the server, which must still be
    // there while our finalizers talk to it
    const shell = spawn("/bin/sh", ["-c", script, "sh", binary, ...args], { detached: true, stdio: "pipe" })
    const exited = Deferred.makeUnsafe<string>()
    let running = true
    let firstLine = ""
    let output = ""
    // writing is never done, yet a closed pipe may still raise EPIPE or ECONNRESET here
    shell.stdin.on("error", () => {})
    shell.stdout.setEncoding("utf8").on("data", (text: string) => {
      firstLine += text
      if (!firstLine.endsWith("\n")) return
      const pid = Number(firstLine)
      resume(
        Effect.succeed({
          pid,
          signal: (name) => {
            if (!running) return false
            try {
              return process.kill(pid, name)
            } catch {
              return false
            }
          },
          exited: Deferred.await(exited)
        })
      )
    })
    shell.stderr.setEncoding("utf8").on("data", (text: string) => {
      output = (output + text).slice(-KEPT_OUTPUT)
    })
    shell.on("error", (error) => resume(Effect.fail(error.message)))
    shell.on("close", () => {
      running = false
      Deferred.doneUnsafe(exited, Effect.succeed(output.trim()))
      resume(Effect.fail(output.trim() || "the shell that starts the server ended at once"))
    })
  })

/** Ports above this have no room for the cluster bus, which listens on the port + 10000. */
const HIGHEST_PORT = 55_535

/** A port of 127.0.0.1 that was free a moment ago; the caller must be ready to find it taken. */
export const freePort: Effect.Effect<number, Error> = Effect.callback<number, Error>((resume) => {
  const server = createServer()
  server.once("error", (error) => resume(Effect.fail(error)))
  server.listen(0, "127.0.0.1", () => {
    const address = server.address()
    const port = typeof address === "object" && address !== null ? address.port : 0
    server.close(() => resume(Effect.succeed(port)))
  })
}).pipe(Effect.repeat({ until: (port) => port <= HIGHEST_PORT }))
