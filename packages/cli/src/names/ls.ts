/**
 * `redis-lock ls`: the locks that are held.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { Lock } from "effect-redis-lock"
import { format } from "../duration.ts"
import { type ExitWith, failed } from "../exit.ts"
import { locksIn, type Target } from "../redis.ts"
import { print, printJson, table } from "../text.ts"
import { visible } from "../visible.ts"

export interface LsOptions extends Target {
  readonly pattern: string
  readonly json: boolean
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

const titles = ["NAME", "OWNER", "MODE", "HOLDS", "REMAINING", "TOKEN"]

export const ls = ({ json, pattern, ...target }: LsOptions): Effect.Effect<void, ExitWith> =>
  Lock.list(pattern).pipe(
    Stream.runCollect,
    Effect.provide(locksIn(target)),
    Effect.catch(failed),
    Effect.map((locks) => locks.flatMap(holdsOf).sort(byNameAndOwner)),
    Effect.flatMap((holds) => (json ? printJson(holds) : print(table(titles, holds.map(rowOf)))))
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

const rowOf = ({ holds, mode, name, owner, remainingMillis, token }: Hold): ReadonlyArray<string> => [
  visible(name),
  owner,
  mode,
  String(holds),
  remainingMillis === null ? "-" : format(Duration.millis(remainingMillis)),
  token ?? "-"
]
