import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { spawn } from "node:child_process"
import { existsSync } from "node:fs"
import { findExecutable } from "./executable.ts"
import { accepts } from "./tcp.ts"

/**
 * policy-rc.d tells Debian to start no service, with any init system; one that exists already (as in
 * Docker's images) is left alone. The lock keeps two test runs from disturbing each other; it is on a file that is there anyway,
 * so that none is left behind.
 */
const script = `
export DEBIAN_FRONTEND=noninteractive
exec 9</etc/debian_version && flock 9
command -v redis-server >/dev/null && exit 0
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  trap 'rm -f "$policy"' EXIT INT TERM HUP
  printf '#!/bin/sh\\nexit 101\\n' >"$policy" && chmod 755 "$policy"
fi
apt-get -qq -o DPkg::Lock::Timeout=120 update 9>&-
apt-get -qq -y -o DPkg::Lock::Timeout=120 --no-install-recommends install redis-server 9>&- || exit
update-rc.d redis-server disable || true
`

const defaultPort = { host: "127.0.0.1", port: 6379 }

/** Whether {@link aptInstall} can be tried: we are root on Debian (or a descendant) and apt-get is there. */
export const canAptInstall: Effect.Effect<boolean> = Effect.map(
  findExecutable(["apt-get"]),
  (aptGet) => Option.isSome(aptGet) && process.getuid?.() === 0 && existsSync("/etc/debian_version")
)

const run = (command: string, args: ReadonlyArray<string>): Effect.Effect<void, string> =>
  Effect.callback<void, string>((resume) => {
    let output = ""
    const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"] })
    const keep = (text: string) => {
      output = (output + text).slice(-2000)
    }
    child.stdout.setEncoding("utf8").on("data", keep)
    child.stderr.setEncoding("utf8").on("data", keep)
    child.on("error", (error) => resume(Effect.fail(error.message)))
    child.on("close", (code) =>
      resume(code === 0 ? Effect.void : Effect.fail(output.trim().split("\n").slice(-3).join("; ")))
    )
  })

/**
 * `apt-get install redis-server`, without leaving a service behind: none is started, none is enabled, and if one appears on
 * 6379 anyway, it is stopped. Not interruptible: a half-done installation is worse than a short wait.
 */
export const aptInstall: Effect.Effect<void, string> = Effect.gen(function* () {
  const occupied = yield* accepts(defaultPort)
  yield* run("/bin/sh", ["-c", script])
  if (occupied || !(yield* accepts(defaultPort))) return
  yield* Effect.ignore(run("service", ["redis-server", "stop"]))
  if (yield* accepts(defaultPort)) {
    return yield* Effect.fail("the installation left a Redis service running on port 6379; stop it")
  }
}).pipe(Effect.uninterruptible)
