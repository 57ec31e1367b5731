/**
 * Runs the checker, a program in Go over Porcupine, which is built when it is first needed.
 */
import { execFile } from "node:child_process"
import { existsSync, renameSync, statSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import type { Operation } from "./history.ts"

/** What the checker says of one lock by one model. */
export interface Verdict {
  readonly lock: string
  readonly model: "mutex" | "semaphore" | "fenced" | "register" | "set"
  readonly holdings: number
  /** Writes that the resource has refused. */
  readonly refused: number
  /** How many holdings would have to be left out for the history to be right. */
  readonly anomalies: number
  /** How many pieces of the history could not be judged in time. */
  readonly undecided: number
  /** The first anomaly, with as few holdings as show it. */
  readonly first?: ReadonlyArray<ReadonlyArray<Operation>>
}

const directory = fileURLToPath(new URL("../checker", import.meta.url))
const program = fileURLToPath(new URL("../dist/checker", import.meta.url))
const run = promisify(execFile)

/** Whether it has been built since its sources changed. */
const isBuilt = (): boolean =>
  existsSync(program) &&
  ["main.go", "models.go", "go.mod"].every(
    (file) => statSync(`${directory}/${file}`).mtimeMs <= statSync(program).mtimeMs
  )

let built: Promise<string | undefined> | undefined

/** Builds it if need be, which takes ten seconds once; the result says why that is not possible. */
export const buildChecker = (): Promise<string | undefined> =>
  (built ??= (async () => {
    if (isBuilt()) return undefined
    const env = { ...process.env, GOFLAGS: "-mod=readonly" }
    // another process may build it as well
    const built = `${program}-${process.pid}`
    try {
      await run("go", ["build", "-o", built, "."], { cwd: directory, env, timeout: 120_000 })
      renameSync(built, program)
      return undefined
    } catch (error) {
      return (error as { readonly code?: unknown }).code === "ENOENT"
        ? "there is no Go (https://go.dev/dl) to build it with"
        : String((error as { readonly stderr?: string }).stderr ?? error).trim()
    }
  })())

/** Checks a history; to be called when the checker is built. */
export const checkHistory = async (file: string): Promise<ReadonlyArray<Verdict>> => {
  // 1 says that something did not hold
  const { stdout } = await run(program, [file], { maxBuffer: 2 ** 26 }).catch(
    (error: { readonly code: unknown; readonly stdout: string; readonly stderr: string }) => {
      if (error.code !== 1) throw new Error(`The checker failed: ${error.stderr}`)
      return error
    }
  )
  return stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Verdict)
}
