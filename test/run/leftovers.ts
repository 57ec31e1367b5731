/**
 * No process outlives a run of the tests: what is left at its end is an error, and what a killed run leaves is killed.
 */
import { spawn } from "node:child_process"
import { chmodSync, existsSync, mkdtempSync, realpathSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { kill, processesOfRun, type RunningProcess } from "./processes.ts"

/** How long a process may take to end after the run has. */
const PATIENCE_MILLIS = 30_000

/** Vitest has a guard of its own, which ends with it. */
const vitests = "vitest-watchdog"

/** Gives this run a TMPDIR of its own, which all its processes inherit. To be closed when all of them should have ended. */
export const watchLeftovers = (): { readonly close: () => Promise<void> } => {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), "effect-redis-lock-")))
  // a server that does not run as root reaches its own directory there
  chmodSync(directory, 0o711)
  process.env["TMPDIR"] = directory
  const compiled = import.meta.url.endsWith(".ts") ? "../dist/run/undertaker.js" : "undertaker.js"
  const program = fileURLToPath(new URL(compiled, import.meta.url))
  if (!existsSync(program)) throw new Error(`${program} is missing: build it with "pnpm build"`)
  // a session of its own: Ctrl-C, or a kill of our whole group, must not reach it
  const undertaker = spawn(process.execPath, [program, directory], {
    detached: true,
    stdio: ["pipe", "ignore", "inherit"],
    cwd: "/"
  })
  undertaker.unref()
  undertaker.stdin.on("error", () => {})
  // as a handle it would keep us alive
  ;(undertaker.stdin as unknown as { unref?: () => void }).unref?.()
  return {
    close: async () => {
      const until = performance.now() + PATIENCE_MILLIS
      let left: ReadonlyArray<RunningProcess>
      while (true) {
        left = processesOfRun(directory).filter(({ command, pid }) => pid !== undertaker.pid && command !== vitests)
        if (left.length === 0 || performance.now() > until) break
        await setTimeout(50)
      }
      for (const process of left) kill(process)
      undertaker.stdin.end("the run has ended\n")
      if (left.length === 0) return
      process.exitCode = 1
      const commands = left.map(({ pid, command }) => `  ${pid} ${command}`).join("\n")
      throw new Error(`The run has left processes behind, which are killed now:\n${commands}`)
    }
  }
}
