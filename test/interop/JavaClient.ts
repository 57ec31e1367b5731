/**
 * The program in `java/`: a Redisson client in a Java process of its own, which does what it is told.
 */
import { Deferred, Effect, Schema, type Scope } from "effect"
import { spawn } from "node:child_process"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"

/** What Redisson threw, or that its process is gone. */
export class JavaError extends Schema.TaggedError<JavaError>("test/JavaError")("JavaError", {
  message: Schema.String
}) {}

/** Where Redis is, and settings of Redisson; times are in milliseconds. */
export interface Settings {
  readonly address?: string
  /** Addresses of nodes of a cluster, in place of `address`. */
  readonly cluster?: ReadonlyArray<string>
  /** Addresses of independent servers: the first member of a multi-lock or RedLock is on the first, and so on. */
  readonly servers?: ReadonlyArray<string>
  /** Redisson's `lockWatchdogTimeout`. */
  readonly watchdogTimeout?: number
  /** Redisson's `fairLockWaitTimeout`. */
  readonly fairWaitTimeout?: number
  /** What a NameMapper puts before every name. */
  readonly prefix?: string
}

export type LockKind =
  | "lock"
  | "fair"
  | "spin"
  | "nonReentrant"
  | "nonReentrantFair"
  | "fenced"
  | "read"
  | "write"
  | "multi"
  | "red"

export type Kind = LockKind | "semaphore" | "permit" | "latch"

/** What some commands need beside a kind, a name and an action; times are in milliseconds. */
export interface Details {
  /** How long to wait at most. Default: for ever. */
  readonly wait?: number
  /** A fixed lease. Default: one that the watchdog renews. */
  readonly lease?: number
  readonly permits?: number
  readonly permitId?: string
  readonly count?: number
  /** The members of a multi-lock or RedLock. */
  readonly names?: ReadonlyArray<string>
  /** Where the counter is, and how often to increment it. */
  readonly port?: number
  readonly times?: number
}

/** A thread of the Java process: an owner of its own, which does one thing after another. */
export interface JavaThread {
  /** What we call it; to Redisson a thread is a number. */
  readonly name: string
  readonly run: <A = unknown>(
    kind: Kind,
    name: string,
    action: string,
    details?: Details
  ) => Effect.Effect<A, JavaError>
}

export interface JavaClient {
  /** Redisson's client id: the first part of its owners. */
  readonly id: string
  readonly thread: (name: string) => JavaThread
  /** How many of its threads do something, and do not sleep until somebody wakes them. */
  readonly awake: Effect.Effect<number, JavaError>
  /** Ends the process at once, as a power cut would. */
  readonly die: Effect.Effect<void>
}

const jar = fileURLToPath(new URL("java/target/interop.jar", import.meta.url))

/** Starts a Java process; it is killed when the scope closes, and ends by itself when we do. */
export const start = Effect.fnUntraced(function* (
  settings: Settings
): Effect.fn.Return<JavaClient, JavaError, Scope.Scope> {
  const pending = new Map<number, Deferred.Deferred<unknown, JavaError>>()
  const ended = yield* Deferred.make<void>()
  let errors = ""
  let isGone = false
  const gone = () => new JavaError({ message: `the Java process is gone. ${errors}` })

  const child = yield* Effect.acquireRelease(
    Effect.sync(() => {
      const child = spawn("java", ["-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-jar", jar])
      createInterface(child.stdout).on("line", (line) => {
        const answer = JSON.parse(line) as { readonly id: number; readonly ok?: unknown; readonly error?: string }
        const asked = pending.get(answer.id)!
        pending.delete(answer.id)
        Deferred.doneUnsafe(
          asked,
          answer.error === undefined ? Effect.succeed(answer.ok) : Effect.fail(new JavaError({ message: answer.error }))
        )
      })
      child.stderr.setEncoding("utf8").on("data", (text: string) => (errors += text))
      child.stdin.on("error", () => {})
      child.on("error", (error) => (errors += error.message))
      child.on("close", () => {
        isGone = true
        for (const asked of pending.values()) Deferred.doneUnsafe(asked, Effect.fail(gone()))
        Deferred.doneUnsafe(ended, Effect.void)
      })
      return child
    }),
    (child) =>
      Effect.andThen(
        Effect.sync(() => child.kill("SIGKILL")),
        Deferred.await(ended)
      )
  )

  let ids = 0
  const ask = <A>(line: object): Effect.Effect<A, JavaError> =>
    Effect.suspend(() => {
      if (isGone) return Effect.fail(gone())
      const asked = Deferred.makeUnsafe<unknown, JavaError>()
      const id = ids++
      pending.set(id, asked)
      child.stdin.write(`${JSON.stringify({ id, ...line })}\n`)
      return Deferred.await(asked) as Effect.Effect<A, JavaError>
    })

  const id = yield* ask<string>(settings)
  return {
    id,
    thread: (thread) => ({
      name: thread,
      run: (kind, name, action, details) => ask({ thread, kind, name, action, ...details })
    }),
    awake: ask({ action: "awake" }),
    die: Effect.andThen(Effect.ignore(ask({ thread: "reaper", action: "die" })), Deferred.await(ended))
  }
})
