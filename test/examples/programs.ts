/**
 * Runs the compiled examples as a user would.
 */
import { Effect, type Scope } from "effect"
import { execFile, spawn } from "node:child_process"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { redisUrl } from "../kit/server/redisUrl.ts"

const pathOf = (program: string) => fileURLToPath(new URL(`../../examples/${program}`, import.meta.url))

/** Runs a program to completion and returns its output. The program must not fail. */
export const runExample = (program: string, env: Record<string, string>): Effect.Effect<string> =>
  Effect.promise(
    () =>
      new Promise((resolve, reject) => {
        execFile(
          process.execPath,
          [pathOf(program)],
          { env: { ...process.env, REDIS_URL: redisUrl, ...env } },
          (error, stdout, stderr) =>
            error === null ? resolve(stdout) : reject(new Error(`${error.message}\n${stdout}\n${stderr}`))
        )
      })
  )

/** A program that runs until it is told to end. */
export interface RunningExample {
  /** The lines that it has printed so far. */
  readonly lines: ReadonlyArray<string>
  readonly end: Effect.Effect<void>
}

/** Starts a program; it is killed when the scope closes. */
export const startExample = (
  program: string,
  args: ReadonlyArray<string>,
  env: Record<string, string>,
  nodeArgs: ReadonlyArray<string> = []
): Effect.Effect<RunningExample, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => {
        const child = spawn(process.execPath, [...nodeArgs, pathOf(program), ...args], {
          env: { ...process.env, REDIS_URL: redisUrl, ...env },
          stdio: ["ignore", "pipe", "inherit"]
        })
        const lines: Array<string> = []
        createInterface(child.stdout).on("line", (line) => lines.push(line))
        return { child, lines, closed: new Promise<void>((resolve) => child.once("close", () => resolve())) }
      }),
      ({ child }) => Effect.sync(() => child.kill("SIGKILL"))
    ),
    ({ child, closed, lines }) => ({
      lines,
      end: Effect.promise(() => {
        child.kill("SIGTERM")
        return closed
      })
    })
  )
