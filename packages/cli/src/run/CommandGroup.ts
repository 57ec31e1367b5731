/**
 * The command and its descendants, as a process group of their own, so that a signal reaches them all.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { type ChildProcess, spawn } from "node:child_process"
import { constants } from "node:os"
import { ExitCode, ExitWith } from "../exit.ts"
import { say } from "../say.ts"

export interface CommandGroup {
  /** Waits for the command itself to end: its exit code, or 128+n when signal n killed it. */
  readonly exitCode: Effect.Effect<number>
  /** Sends a signal to every process of the group; does nothing if none is left. */
  readonly signal: (signal: NodeJS.Signals) => Effect.Effect<void>
  /** Waits until no process of the group is left, which may be later than the command's own end. */
  readonly gone: Effect.Effect<void>
}

/**
 * Starts a command without a shell, with our stdin, stdout and stderr, and with our environment plus some variables, or without
 * those that are undefined. Fails as a shell does if it cannot be started. A command that still runs when the scope closes, or when this process exits before that, is
 * killed: it must not go on without the lock.
 */
export const start = (
  command: string,
  args: ReadonlyArray<string>,
  variables: Readonly<Record<string, string | undefined>>
): Effect.Effect<CommandGroup, ExitWith, Scope.Scope> =>
  Effect.gen(function* () {
    const exitCode = yield* Deferred.make<number>()
    const child = yield* Effect.acquireRelease(spawned(command, args, variables, exitCode), (child) =>
      Deferred.isDoneUnsafe(exitCode) ? Effect.void : send(child.pid!, "SIGKILL")
    )
    const group = child.pid!
    yield* killOnExit(group)
    return {
      exitCode: Deferred.await(exitCode),
      signal: (signal) => send(group, signal),
      gone: Effect.gen(function* () {
        while (exists(group)) yield* Effect.sleep("20 millis")
      })
    }
  })

const spawned = (
  command: string,
  args: ReadonlyArray<string>,
  variables: Readonly<Record<string, string | undefined>>,
  exitCode: Deferred.Deferred<number>
): Effect.Effect<ChildProcess, ExitWith> =>
  Effect.callback((resume) => {
    const refuse = (error: unknown) => resume(Effect.fail(notStarted(command, error as NodeJS.ErrnoException)))
    // spawn throws some errors and emits others
    try {
      // detached: a new session, and with it a new process group
      const child = spawn(command, args, { detached: true, stdio: "inherit", env: { ...process.env, ...variables } })
      child.once("error", refuse)
      child.once("spawn", () => resume(Effect.succeed(child)))
      child.once("exit", (code, signal) => {
        Deferred.doneUnsafe(exitCode, Effect.succeed(code ?? codeOf(signal!)))
      })
    } catch (error) {
      refuse(error)
    }
  })

/** The exit code with which a shell reports a command that this signal has killed. */
export const codeOf = (signal: NodeJS.Signals): number => ExitCode.killed + constants.signals[signal]

const shortOf = (command: string): string => (command.length > 200 ? `${command.slice(0, 60)}...` : command)

const notStarted = (command: string, error: NodeJS.ErrnoException): ExitWith =>
  error.code === "ENOENT" || command === ""
    ? new ExitWith({ code: ExitCode.notFound, message: `${shortOf(command)}: command not found` })
    : new ExitWith({ code: ExitCode.notExecutable, message: `${shortOf(command)}: cannot be executed (${error.code})` })

const send = (group: number, signal: NodeJS.Signals): Effect.Effect<void> =>
  Effect.suspend(() => {
    try {
      process.kill(-group, signal)
      return Effect.void
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      // EPERM: a command that has changed its user
      return code === "ESRCH" ? Effect.void : say(`cannot send ${signal} to the command (${code})`)
    }
  })

/** An uncaught exception and `process.exit` close no scope. */
const killOnExit = (group: number): Effect.Effect<void, never, Scope.Scope> => {
  const kill = () => Effect.runSync(send(group, "SIGKILL"))
  return Effect.acquireRelease(
    Effect.sync(() => void process.on("exit", kill)),
    () => Effect.sync(() => void process.off("exit", kill))
  )
}

const exists = (group: number): boolean => {
  try {
    return process.kill(-group, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ESRCH"
  }
}
