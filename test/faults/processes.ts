/**
 * Child processes for the fault tests: the compiled programs under `fixtures/`, which tell what they do as lines of JSON.
 */
import { assert } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import { type ChildProcess, spawn } from "node:child_process"
import { existsSync } from "node:fs"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import type { ClosingEvent, ClosingSettings } from "./fixtures/closing.ts"
import type { RunnerEvent, RunnerSettings } from "../runnerStorage/entities.ts"
import type { StepperEvent, StepperSettings } from "./fixtures/stepper.ts"
import type { VisitorEvent, VisitorSettings } from "./fixtures/visitor.ts"
import { eventually, until } from "../kit/eventually.ts"

interface Programs {
  readonly closing: { readonly settings: ClosingSettings; readonly event: ClosingEvent }
  readonly runner: { readonly settings: RunnerSettings; readonly event: RunnerEvent }
  readonly stepper: { readonly settings: StepperSettings; readonly event: StepperEvent }
  readonly visitor: { readonly settings: VisitorSettings; readonly event: VisitorEvent }
}

export interface Process<Event extends { readonly event: string }> {
  readonly signal: (name: "SIGSTOP" | "SIGCONT" | "SIGKILL" | "SIGTERM") => Effect.Effect<void>
  /** Waits for the first event of that name. */
  readonly told: <Name extends Event["event"]>(name: Name) => Effect.Effect<Extract<Event, { readonly event: Name }>>
  /** All that it has told so far. */
  readonly events: ReadonlyArray<Event>
  /** Whether there has been an event of that name. */
  readonly hasTold: (name: Event["event"]) => boolean
  readonly hasEnded: () => boolean
  /** Waits until the process has ended by itself, and without a complaint. */
  readonly ended: Effect.Effect<void>
}

/** Starts one of the programs; it is killed when the scope closes. */
export const start = Effect.fnUntraced(function* <Name extends keyof Programs>(
  name: Name,
  settings: Programs[Name]["settings"]
): Effect.fn.Return<Process<Programs[Name]["event"]>, never, Scope.Scope> {
  type Event = Programs[Name]["event"]
  // from a test, and from a program in dist
  const here = fileURLToPath(new URL(`fixtures/${name}.js`, import.meta.url))
  const program = existsSync(here) ? here : here.replace("/test/faults/", "/test/dist/faults/")
  if (!existsSync(program)) assert.fail(`${program} is missing: build it with "pnpm build"`)
  const events: Array<Event> = []
  let output = ""
  let ended = false
  const child = yield* Effect.acquireRelease(
    Effect.sync((): ChildProcess => {
      const child = spawn(process.execPath, [program, JSON.stringify(settings)], { stdio: ["ignore", "pipe", "pipe"] })
      createInterface(child.stdout).on("line", (line) => {
        output += `${line}\n`
        if (line.startsWith("{")) events.push(JSON.parse(line) as Event)
      })
      child.stderr.setEncoding("utf8").on("data", (text: string) => (output += text))
      // not "exit", after which there may be more to read
      child.on("close", () => (ended = true))
      return child
    }),
    (child) => Effect.sync(() => child.kill("SIGKILL"))
  )
  const find = <Kind extends Event["event"]>(kind: Kind) =>
    events.find((event): event is Extract<Event, { readonly event: Kind }> => event.event === kind)
  return {
    signal: (signal) => Effect.sync(() => assert.isTrue(child.kill(signal), `no process to send ${signal}`)),
    told: (kind) =>
      Effect.map(
        eventually(
          `the program "${name}" says "${kind}"`,
          () => ({ said: find(kind), ended, output }),
          ({ said, ended }) => said !== undefined || ended
        ),
        ({ said }) => said ?? assert.fail(`"${name}" ended without saying "${kind}": ${output}`)
      ),
    events,
    hasTold: (kind) => find(kind) !== undefined,
    hasEnded: () => ended,
    ended: Effect.map(
      until(`the program "${name}" ends`, () => ended),
      () => assert.strictEqual(child.exitCode, 0, output)
    )
  }
})
