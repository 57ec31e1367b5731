/**
 * The built `redis-lock` as a child process, and what the tests look at beside it.
 */
import { Deferred, Effect, type Scope } from "effect"
import type { Redis } from "ioredis"
import { execFileSync, spawn } from "node:child_process"
import { randomUUID } from "node:crypto"
import { closeSync, constants as modes, mkdtempSync, openSync, readSync, rmSync, writeSync } from "node:fs"
import { constants, tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { bare } from "../kit/server/bareRedis.ts"
import { redisUrl } from "../kit/server/redisUrl.ts"
import { isRunning, kill, processesWith } from "../run/processes.ts"
import { until } from "../kit/eventually.ts"

/** `pnpm test` runs the bundle, which users get; `vitest` alone the last build. */
export const bin = fileURLToPath(
  new URL(`../../packages/cli/${process.env["REDIS_LOCK_CLI"] ?? "dist/bin.js"}`, import.meta.url)
)

const main = new URL("../../packages/cli/dist/main.js", import.meta.url).href
const commandLines = fileURLToPath(new URL("../dist/cli/fixtures/commandLines.js", import.meta.url))

export interface Ended {
  /** As a shell would report it. */
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

export interface Running {
  readonly pid: number
  readonly signal: (signal: NodeJS.Signals) => Effect.Effect<void>
  readonly write: (text: string) => Effect.Effect<void>
  /** Waits until stdout has this text, or has it that often. */
  readonly says: (text: string, times?: number) => Effect.Effect<void>
  /** Waits until stderr has this text. */
  readonly warns: (text: string) => Effect.Effect<void>
  /** Whether stdout has this text. */
  readonly hasSaid: (text: string) => boolean
  /** Waits until stdout has this text with a number behind it: the number. */
  readonly number: (label: string) => Effect.Effect<number>
  /** Waits until it has exited, and everybody has closed its stdout and stderr. */
  readonly ended: Effect.Effect<Ended>
}

export interface Options {
  /** Variables in place of ours; `undefined` removes one. Default: `REDIS_URL` of the tests' server. */
  readonly env?: Record<string, string | undefined>
  /** What stdin has, and then ends. Default: nothing, and it stays open. */
  readonly stdin?: string
  /** Default: {@link bin}. */
  readonly program?: string
  /** Where its stderr leads, in place of {@link Ended}. */
  readonly stderr?: number
}

/** Inherited by the command that redis-lock runs, which has a process group of its own. */
const startedBy = "REDIS_LOCK_STARTED_BY"

/** Starts redis-lock. It is killed when the scope closes, and so is the command that it runs. */
export const start = (args: ReadonlyArray<string>, options: Options = {}): Effect.Effect<Running, never, Scope.Scope> =>
  Effect.gen(function* () {
    const id = randomUUID()
    const ended = yield* Deferred.make<Ended>()
    let stdout = ""
    let stderr = ""
    const child = yield* Effect.acquireRelease(
      Effect.sync(() => {
        const child = spawn(process.execPath, [options.program ?? bin, ...args], {
          env: { ...process.env, REDIS_URL: redisUrl, REDIS_QUORUM: undefined, [startedBy]: id, ...options.env },
          stdio: ["pipe", "pipe", options.stderr ?? "pipe"]
        })
        child.stdout!.setEncoding("utf8").on("data", (text: string) => (stdout += text))
        child.stderr?.setEncoding("utf8").on("data", (text: string) => (stderr += text))
        child.on("close", (code, signal) => {
          const shown = code ?? 128 + constants.signals[signal!]
          Deferred.doneUnsafe(ended, Effect.succeed({ code: shown, stdout, stderr }))
        })
        child.stdin!.on("error", () => {})
        if (options.stdin !== undefined) child.stdin!.end(options.stdin)
        return child
      }),
      (child) =>
        Effect.sync(() => {
          child.kill("SIGKILL")
          for (const process of processesWith(startedBy, id)) kill(process)
        })
    )
    return {
      pid: child.pid!,
      signal: (signal) => Effect.sync(() => void child.kill(signal)),
      write: (text) => Effect.sync(() => void child.stdin!.write(text)),
      hasSaid: (text) => stdout.includes(text),
      says: (text, times = 1) => until(`it says "${text}"`, () => stdout.split(text).length > times),
      warns: (text) => until(`it warns "${text}"`, () => stderr.includes(text)),
      number: (label) =>
        Effect.gen(function* () {
          const pattern = new RegExp(`${label} ?(\\d+)\\D`)
          yield* until(`it tells the number of ${label}`, () => pattern.test(stdout))
          return Number(pattern.exec(stdout)![1])
        }),
      ended: Deferred.await(ended)
    }
  })

/** Runs redis-lock to its end. */
export const redisLock = (args: ReadonlyArray<string>, options?: Options): Effect.Effect<Ended> =>
  Effect.scoped(Effect.flatMap(start(args, { stdin: "", ...options }), (running) => running.ended))

/** A pipe that blocks who writes to it, until it is read. */
export interface FullPipe {
  /** For a child's `stdio`. */
  readonly end: number
  /** Reads it until it has had this text: all that was written to the full pipe. */
  readonly readUntil: (text: string) => Effect.Effect<string>
}

export const fullPipe: Effect.Effect<FullPipe, never, Scope.Scope> = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => {
      const folder = mkdtempSync(join(tmpdir(), "redis-lock-"))
      const path = join(folder, "pipe")
      execFileSync("mkfifo", [path])
      const own = openSync(path, modes.O_RDWR | modes.O_NONBLOCK)
      return { folder, own, end: openSync(path, "w") }
    }),
    ({ end, folder, own }) =>
      Effect.sync(() => {
        closeSync(end)
        closeSync(own)
        rmSync(folder, { recursive: true })
      })
  ),
  ({ end, own }) => {
    const untilAgain = (step: () => void) => {
      try {
        while (true) step()
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "EAGAIN") throw error
      }
    }
    // byte by byte at last: a pipe with room for less than a page takes nothing of a page
    for (const size of [4096, 1]) untilAgain(() => writeSync(own, "\0".repeat(size)))
    let read = ""
    const chunk = Buffer.alloc(4096)
    return {
      end,
      readUntil: (text) =>
        Effect.map(
          until(`the pipe has "${text}"`, () => {
            untilAgain(() => (read += chunk.toString("utf8", 0, readSync(own, chunk))))
            return read.includes(text)
          }),
          () => read.replaceAll("\0", "")
        )
    }
  }
)

/**
 * How redis-lock ends with each of these command lines, which must be wrong: one process runs them one after the other, and takes less time than
 * one for each.
 */
export const endings = (
  lines: ReadonlyArray<ReadonlyArray<string>>,
  options?: Options
): Effect.Effect<ReadonlyArray<Ended>> =>
  Effect.map(
    redisLock([main, JSON.stringify(lines)], { ...options, program: commandLines }),
    ({ code, stderr, stdout }) => {
      const [said, told] = [stderr, stdout].map((text) => text.split("\0"))
      if (code !== 0 || said!.length !== lines.length + 1) throw new Error(`${code}: ${stderr}`)
      return lines.map((_, i) => ({
        code: Number.parseInt(told![i + 1]!, 10),
        // what follows the code, or the end of the one before, on the next line
        stdout: i === 0 ? told![0]! : told![i]!.replace(/^.*\n/, ""),
        stderr: i === 0 ? said![0]! : said![i]!.replace(/^\n/, "")
      }))
    }
  )

/** Whether a process runs; a zombie does not. */
export const isAlive = (pid: number): Effect.Effect<boolean> => Effect.sync(() => isRunning(pid))

export const isDead = (pid: number): Effect.Effect<boolean> => Effect.map(isAlive(pid), (alive) => !alive)

/** A plain client, to look at the keys themselves. */
export const client = (url = redisUrl): Effect.Effect<Redis, never, Scope.Scope> => bare({ url })

/** Holds a lock as somebody else's client would: who it is. */
export const holdElsewhere = (redis: Redis, name: string): Effect.Effect<string> =>
  Effect.promise(async () => {
    const owner = `${randomUUID()}:1`
    await redis.multi().hset(name, owner, 1).pexpire(name, 60_000).exec()
    return owner
  })
