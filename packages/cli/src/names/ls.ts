/**
 * `redis-lock ls`: what is held, one line a holder.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { Lock, type LockState } from "effect-redis-lock"
import type { ExitWith, Failure } from "../exit.ts"
import { millisOf } from "./nameState.ts"
import { locksIn, type Target } from "../redis.ts"
import { type Column, print, printJson, table } from "../text.ts"
import { say } from "../say.ts"
import { span } from "../span.ts"
import { quoted, visible } from "../visible.ts"

export interface LsOptions extends Target {
  readonly pattern: string
  readonly json: boolean
}

/** One owner's hold of one lock, or one permit: what `--json` prints. */
interface Hold {
  readonly name: string
  readonly kind: LockState["kind"]
  /** The id of a permit. */
  readonly owner: string
  /** `null` if its client has told none. */
  readonly label: string | null
  /** `read` or `write` for a read-write lock. */
  readonly mode: LockState["holders"][number]["mode"] | "permit"
  readonly holds: number
  /** `null` if it never expires. */
  readonly remainingMillis: number | null
  /** A string, as a token may be larger than a JSON reader's integers; `null` if there never was one. */
  readonly token: string | null
}

export const ls = ({ json, pattern, ...target }: LsOptions): Effect.Effect<void, ExitWith | Failure> =>
  Lock.list(pattern).pipe(
    Stream.runCollect,
    Effect.provide(locksIn(target)),
    Effect.map((names) => names.flatMap(holdsOf).sort(byNameAndOwner)),
    Effect.flatMap((holds) => {
      if (json) return printJson(holds)
      const which = pattern === "*" ? "" : ` under a name that matches ${quoted(pattern)}`
      return holds.length === 0 ? say(`nothing is held${which}`) : print(tableOf(holds))
    })
  )

const holdsOf = ({ holders, kind, name, permits, token }: LockState): ReadonlyArray<Hold> => [
  ...holders.map(({ holdCount, label, mode, owner, remaining }): Hold => ({
    name,
    kind,
    owner,
    label: label ?? null,
    mode,
    holds: holdCount,
    remainingMillis: millisOf(remaining),
    token: token === undefined ? null : String(token)
  })),
  ...permits.map(({ id, remaining }): Hold => ({
    name,
    kind,
    owner: id,
    label: null,
    mode: "permit",
    holds: 1,
    remainingMillis: millisOf(remaining),
    token: null
  }))
]

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

const byNameAndOwner = (a: Hold, b: Hold): number =>
  compare(a.name, b.name) || compare(a.owner, b.owner) || compare(a.mode, b.mode)

const columns: ReadonlyArray<Column<Hold>> = [
  { title: "NAME", of: ({ name }) => visible(name) },
  { title: "LABEL", of: ({ label }) => (label === null ? undefined : visible(label)) },
  { title: "MODE", of: ({ mode }) => mode },
  { title: "HOLDS", of: ({ holds }) => String(holds) },
  { title: "REMAINING", of: ({ remainingMillis }) => (remainingMillis === null ? undefined : span(remainingMillis)) },
  { title: "TOKEN", of: ({ token }) => token ?? undefined },
  { title: "OWNER", of: ({ owner }) => visible(owner) }
]

const tableOf = (holds: ReadonlyArray<Hold>): string => {
  const hasLabels = holds.some(({ label }) => label !== null)
  return table(hasLabels ? columns : columns.filter(({ title }) => title !== "LABEL"), holds)
}
