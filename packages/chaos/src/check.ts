/**
 * Runs the checker, a program in Go over Porcupine, which is built when it is first needed.
 */
import { execFile } from "node:child_process"
import { existsSync, mkdtempSync, renameSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { now } from "./events.ts"
import { type Operation, writeHistory } from "./history.ts"
import type { Violation } from "./judge.ts"

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

/** Checks what was done to locks; the result is a reason, where the checker cannot be built. */
export const checked = async (operations: ReadonlyArray<Operation>): Promise<ReadonlyArray<Verdict> | string> => {
  const reason = await buildChecker()
  if (reason !== undefined) return reason
  const directory = mkdtempSync(join(tmpdir(), "history-"))
  try {
    writeHistory(join(directory, "history.jsonl"), operations)
    return await checkHistory(join(directory, "history.jsonl"))
  } finally {
    rmSync(directory, { recursive: true })
  }
}

/** Where Redis has forgotten what it granted, two may be in at once: tokens must rise, and nothing that was written with one is lost. */
export const anomaliesOf = (verdicts: ReadonlyArray<Verdict>, isForgetful = false): ReadonlyArray<Violation> =>
  verdicts.flatMap(({ anomalies, first = [], lock, model, undecided }) => {
    if (isForgetful && (model === "mutex" || model === "semaphore")) return []
    const holds = first.flatMap(([acquire]) => (acquire?.op === "acquire" ? [acquire] : []))
    const who = holds.map(({ hold, process, token }) => `process ${process} (owner ${hold}, token ${token})`).join(", ")
    return [
      ...(undecided > 0 ? [{ at: now(), what: `${lock}, ${model}: the checker could not decide in time` }] : []),
      ...(anomalies > 0
        ? [
            {
              at: holds.at(-1)?.return ?? now(),
              what: `${lock}, ${model}: ${anomalies} anomalies, the first of ${who}`
            }
          ]
        : [])
    ]
  })
