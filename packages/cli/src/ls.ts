/**
 * `redis-lock ls`: the locks that are held.
 */
import { displayWidth } from "effect/cli/CliOutput"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { Lock } from "effect-redis-lock"
import { format } from "./duration.ts"
import { ExitCode, ExitWith, unreachable } from "./exit.ts"
import { locksIn, type Urls } from "./redis.ts"

export interface LsOptions {
  readonly pattern: string
  readonly json: boolean
  readonly redis: Urls
}

/** One owner's hold of one lock: what `--json` prints. */
interface Hold {
  readonly name: string
  readonly owner: string
  /** `read` or `write` for a read-write lock. */
  readonly mode: Lock.LockState["holders"][number]["mode"]
  readonly holds: number
  /** `null` if the lock never expires. */
  readonly remainingMillis: number | null
  /** A string, as a token may be larger than a JSON reader's integers; `null` if the lock never had one. */
  readonly token: string | null
}

export const ls = ({ json, pattern, redis }: LsOptions): Effect.Effect<void, ExitWith> =>
  Lock.list(pattern).pipe(
    Stream.runCollect,
    Effect.provide(locksIn(redis)),
    Effect.catchTags({
      LockStoreError: unreachable,
      RedisDriverError: unreachable,
      InvalidLockOptions: ({ message }) => new ExitWith({ code: ExitCode.usage, message })
    }),
    Effect.map((locks) => locks.flatMap(holdsOf).sort(byNameAndOwner)),
    Effect.flatMap((holds) => print(json ? `${JSON.stringify(holds, undefined, 2)}\n` : table(holds)))
  )

const holdsOf = ({ holders, name, remaining, token }: Lock.LockState): ReadonlyArray<Hold> =>
  holders.map(({ holdCount, mode, owner }) => ({
    name,
    owner,
    mode,
    holds: holdCount,
    remainingMillis: remaining === undefined ? null : Duration.toMillis(remaining),
    token: token === undefined ? null : String(token)
  }))

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

const byNameAndOwner = (a: Hold, b: Hold): number =>
  compare(a.name, b.name) || compare(a.owner, b.owner) || compare(a.mode, b.mode)

const table = (holds: ReadonlyArray<Hold>): string => {
  if (holds.length === 0) return ""
  const rows = holds.map(({ holds, mode, name, owner, remainingMillis, token }) => [
    visible(name),
    owner,
    mode,
    String(holds),
    remainingMillis === null ? "-" : format(Duration.millis(remainingMillis)),
    token ?? "-"
  ])
  rows.unshift(["NAME", "OWNER", "MODE", "HOLDS", "REMAINING", "TOKEN"])
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => displayWidth(row[column]!))))
  const line = (row: ReadonlyArray<string>) =>
    row.map((cell, column) => cell + " ".repeat(widths[column]! - displayWidth(cell))).join("  ")
  return rows.map((row) => `${line(row).trimEnd()}\n`).join("")
}

/** A name may contain any text: no character of it may end the line, move the cursor or colour the terminal. */
const visible = (name: string): string =>
  name.replace(/[\\\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) =>
    character === "\\" ? "\\\\" : `\\u{${character.codePointAt(0)!.toString(16)}}`
  )

/** Waits until everything is written. A reader that stops early, as in `ls | head -1`, is not a failure. */
const print = (text: string): Effect.Effect<void, ExitWith> =>
  Effect.callback((resume) => {
    process.stdout.on("error", ({ code, message }: NodeJS.ErrnoException) =>
      resume(code === "EPIPE" ? Effect.void : Effect.fail(new ExitWith({ code: ExitCode.notWritten, message })))
    )
    process.stdout.write(text, (error) => {
      if (!error) resume(Effect.void)
    })
  })
