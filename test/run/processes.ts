/**
 * Looks at processes without `ps`, which a bare Debian does not have: by `/proc` on Linux, by signal 0 elsewhere.
 */
import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs"

/** Whether there is a `/proc` to look at. */
export const hasProc = existsSync("/proc/self/stat")

/** A file or link of `/proc`; undefined where the process is gone, or is somebody else's. */
const read = <A>(look: () => A): A | undefined => {
  try {
    return look()
  } catch {
    return undefined
  }
}

/** Whether a process runs. A zombie does not; without `/proc` it still counts until its parent has reaped it. */
export const isRunning = (pid: number): boolean => {
  if (hasProc) {
    const stat = read(() => readFileSync(`/proc/${pid}/stat`, "utf8"))
    // the state follows the program's name, which is in parentheses and may itself have some
    return stat !== undefined && !/^[ZX]/.test(stat.slice(stat.lastIndexOf(")") + 2))
  }
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM"
  }
}

export interface RunningProcess {
  readonly pid: number
  /** Its program and arguments. */
  readonly command: string
}

const running = (accept: (pid: number) => boolean): ReadonlyArray<RunningProcess> =>
  (hasProc ? readdirSync("/proc") : [])
    .filter((entry) => /^\d+$/.test(entry))
    .map(Number)
    .filter((pid) => accept(pid) && isRunning(pid))
    .map((pid) => ({
      pid,
      command: (read(() => readFileSync(`/proc/${pid}/cmdline`, "utf8")) ?? "").replaceAll("\0", " ").trim()
    }))

const hasVariable = (pid: number, name: string, value: string): boolean =>
  read(() => readFileSync(`/proc/${pid}/environ`, "latin1"))
    ?.split("\0")
    .includes(`${name}=${value}`) === true

/** The processes that were started with this variable; children inherit it. None where there is no `/proc`. */
export const processesWith = (name: string, value: string): ReadonlyArray<RunningProcess> =>
  running((pid) => hasVariable(pid, name, value))

/**
 * The processes of one run of the tests, besides this one: those that have inherited its `TMPDIR`, or work below it, as a
 * redis-server does, which writes its title over its environment.
 */
export const processesOfRun = (directory: string): ReadonlyArray<RunningProcess> =>
  running(
    (pid) =>
      pid !== process.pid &&
      (hasVariable(pid, "TMPDIR", directory) ||
        read(() => readlinkSync(`/proc/${pid}/cwd`))?.startsWith(`${directory}/`) === true)
  )

/** SIGKILL; nothing where it is gone already. */
export const kill = ({ pid }: { readonly pid: number }): void => {
  try {
    process.kill(pid, "SIGKILL")
  } catch {
    // gone in the meantime
  }
}
