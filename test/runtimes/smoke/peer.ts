/**
 * Another process of the same runtime.
 */
import { Effect, type Scope } from "effect"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"

export interface Peer {
  /** Waits until it writes that line, of lines of its log and others. */
  readonly says: (line: string) => Effect.Effect<void>
  /** All further lines that it writes until it ends. */
  readonly output: Effect.Effect<string>
  readonly tell: (line: string) => Effect.Effect<void>
  readonly kill: Effect.Effect<void>
  /** Waits until it has ended, for its exit code. */
  readonly exitCode: Effect.Effect<number | null>
}

/** A program of this folder. */
export const program = (name: string): string => fileURLToPath(new URL(`${name}.js`, import.meta.url))

/** Arguments of the runtime that the environment names. */
export const argsOf = (variable: string): ReadonlyArray<string> => JSON.parse(process.env[variable] ?? "[]")

/** Runs a program by the runtime of this process; it is killed when the scope closes. */
export const startPeer = Effect.fnUntraced(function* (
  file: string,
  args: ReadonlyArray<string>,
  runtimeArgs = argsOf("RUNTIME_ARGS")
): Effect.fn.Return<Peer, never, Scope.Scope> {
  const child = yield* Effect.acquireRelease(
    Effect.sync(() => spawn(process.execPath, [...runtimeArgs, file, ...args], { stdio: ["pipe", "pipe", "inherit"] })),
    (child) => Effect.sync(() => void child.kill("SIGKILL"))
  )
  const closed = once(child, "close") as Promise<[code: number | null]>
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  return {
    says: (line) =>
      Effect.promise(async () => {
        for (let next = await lines.next(); next.value !== line; next = await lines.next()) {
          if (next.done === true) throw new Error(`the other process ended without saying "${line}"`)
        }
      }),
    output: Effect.promise(async () => {
      const further: Array<string> = []
      for (let next = await lines.next(); next.done !== true; next = await lines.next()) further.push(next.value)
      return further.join("\n")
    }),
    tell: (line) => Effect.sync(() => void child.stdin.write(`${line}\n`)),
    kill: Effect.promise(async () => {
      child.kill("SIGKILL")
      await closed
    }),
    exitCode: Effect.promise(async () => (await closed)[0])
  }
})
