import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { spawn } from "node:child_process"
import { homedir } from "node:os"
import { join } from "node:path"
import { findExecutable } from "./executable.ts"

/**
 * Downloads the packages that `apt-get install redis-server` would install, and unpacks them below the directory that it is given: neither needs
 * root. The lists are its own, as those of a container are missing and those of other machines old. The directory appears under its
 * name once its server has run.
 */
const script = `
"$1/bin/redis-server" --version 2>/dev/null && exit
set -e
mkdir -p "\${1%/*}"
dir=$(mktemp -d "$1.XXXXXX")
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM HUP
mkdir -p "$dir/apt/lists/partial" "$dir/apt/archives/partial" "$dir/bin"
apt() {
  apt-get -qq -y -o Dir::State="$dir/apt" -o Dir::State::status=/var/lib/dpkg/status -o Dir::Cache="$dir/apt" \\
    -o Debug::NoLocking=true "$@"
}
apt update
apt --no-install-recommends --download-only --reinstall install redis-server redis-tools
for package in "$dir"/apt/archives/*.deb; do dpkg-deb -x "$package" "$dir"; done
rm -rf "$dir/apt"
triplet=$(cd "$dir/usr/lib" && echo *-linux-*)
for program in redis-server redis-cli; do
  cat >"$dir/bin/$program" <<END
#!/bin/sh
root=\\\${0%/*}/..
export LD_LIBRARY_PATH="\\$root/usr/lib/$triplet:\\$root/lib/$triplet"
exec "\\$root/usr/bin/$program" "\\$@"
END
  chmod +x "$dir/bin/$program"
done
"$dir/bin/redis-server" --version
rm -rf "$1"
mv "$dir" "$1"
`

/** Whether {@link aptFetch} can be tried: on Debian and its descendants. */
export const canAptFetch: Effect.Effect<boolean> = Effect.map(
  Effect.forEach(["apt-get", "dpkg-deb"], (name) => findExecutable([name])),
  (found) => found.every(Option.isSome)
)

/** Where {@link aptFetch} puts what it downloads. */
export const fetchedServer = (): string =>
  join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "effect-redis-lock", "redis-server")

/** Downloads a redis-server, unless an earlier run has, and succeeds with the directory of its programs. Fails with the reason. */
export const aptFetch: Effect.Effect<string, string> = Effect.callback<string, string>((resume) => {
  const directory = fetchedServer()
  let output = ""
  const child = spawn("/bin/sh", ["-c", script, "sh", directory], { stdio: ["ignore", "pipe", "pipe"] })
  const keep = (text: string) => {
    output = (output + text).slice(-2000)
  }
  child.stdout.setEncoding("utf8").on("data", keep)
  child.stderr.setEncoding("utf8").on("data", keep)
  child.on("error", (error) => resume(Effect.fail(error.message)))
  child.on("close", (code) =>
    resume(
      code === 0 ? Effect.succeed(join(directory, "bin")) : Effect.fail(output.trim().split("\n").slice(-3).join("; "))
    )
  )
  return Effect.sync(() => child.kill())
})
