/**
 * What Redis tells of one name, as JSON and as text.
 */
import * as Duration from "effect/Duration"
import type { HolderState, LockState, WaiterState } from "effect-redis-lock"
import { format } from "../duration.ts"
import { type Column, table } from "../text.ts"
import { isKept, releaserOf, visible } from "../visible.ts"

/** `null` where there is no expiry. */
export const millisOf = (remaining: Duration.Duration | undefined): number | null =>
  remaining === undefined ? null : Duration.toMillis(remaining)

/** What `--json` prints. */
export const jsonOf = ({ count, held, holders, kind, name, permits, token, waiters, waiting }: LockState) => ({
  name,
  kind,
  // a string, as a token may be larger than a JSON reader's integers
  token: token === undefined ? null : String(token),
  holders: holders.map(({ holdCount, label, mode, owner, remaining, since }) => ({
    owner,
    label: label ?? null,
    mode,
    holds: holdCount,
    heldForMillis: since === undefined ? null : Math.round(Duration.toMillis(since)),
    remainingMillis: millisOf(remaining)
  })),
  waiting,
  waiters: waiters.map(({ label, mode, owner, since }) => ({
    owner,
    label: label ?? null,
    mode: mode ?? null,
    waitedMillis: since === undefined ? null : Math.round(Duration.toMillis(since))
  })),
  count: count ?? null,
  held,
  permits: permits.map(({ id, remaining }) => ({ id, remainingMillis: millisOf(remaining) }))
})

const kinds: Record<LockState["kind"], string> = {
  lock: "lock",
  "fair lock": "fair lock",
  "read-write lock": "read-write lock",
  "permit semaphore": "permit semaphore",
  counter: "a latch, or a semaphore of which no leased permit is held: Redis keeps only a number of either",
  other: "something else: neither a lock nor a semaphore nor a latch",
  none: "nothing that is held"
}

const holderColumns: ReadonlyArray<Column<HolderState>> = [
  { title: "LABEL", of: ({ label }) => label && visible(label) },
  { title: "MODE", of: ({ mode }) => mode },
  { title: "HOLDS", of: ({ holdCount }) => String(holdCount) },
  { title: "HELD FOR", of: ({ since }) => since && format(since) },
  { title: "REMAINING", of: ({ remaining }) => remaining && format(remaining) },
  { title: "OWNER", of: ({ owner }) => visible(owner) }
]

/** Only labels tell for how long a holder has held it, and Redisson's clients have none. */
const ofLabels = new Set(["LABEL", "HELD FOR"])

const holdersTable = (holders: LockState["holders"]): string => {
  const hasLabels = holders.some(({ label }) => label !== undefined)
  return table(hasLabels ? holderColumns : holderColumns.filter(({ title }) => !ofLabels.has(title)), holders)
}

const waiterColumns: ReadonlyArray<Column<WaiterState>> = [
  { title: "PLACE", of: (_, i) => String(i + 1) },
  { title: "LABEL", of: ({ label }) => label && visible(label) },
  { title: "MODE", of: ({ mode }) => mode },
  { title: "WAITED", of: ({ since }) => since && format(since) },
  { title: "WAITING OWNER", of: ({ owner }) => visible(owner) }
]

const permitColumns: ReadonlyArray<Column<LockState["permits"][number]>> = [
  { title: "PERMIT", of: ({ id }) => id },
  { title: "REMAINING", of: ({ remaining }) => remaining && format(remaining) }
]

/** For people: what there is first, then who holds it, and then who waits. */
export const textOf = (state: LockState): string => {
  const { count, held, holders, kind, name, permits, token, waiters, waiting } = state
  const facts: Array<readonly [string, string]> = [
    ["name", visible(name)],
    ["kind", kinds[kind]]
  ]
  if (token !== undefined) facts.push(["token", String(token)])
  if (kind === "permit semaphore") facts.push(["free", String(count)], ["held", String(held)])
  if (kind === "counter") facts.push(["count", String(count)])
  if (waiting > 0 || kind === "fair lock") facts.push(["waiting", String(waiting)])
  const parts = [
    facts.map(([title, text]) => `${title.padEnd(9)}${text}\n`).join(""),
    holdersTable(holders),
    table(permitColumns, permits),
    // without the columns of what is known of nobody
    table(
      waiterColumns.filter(({ of }) => waiters.some((waiter, i) => of(waiter, i) !== undefined)),
      waiters
    )
  ]
  return parts.filter((part) => part !== "").join("\n")
}

/** Who keeps others out, within a sentence: `held by 7e3d...:1 for 29.4s more`; undefined where nobody is known to. */
export const heldBy = ({ count, held, holders, waiting }: LockState): string | undefined => {
  if (held > 0) return `${held} permit${held === 1 ? " is" : "s are"} held, ${count ?? 0} free`
  const [first, ...others] = holders
  if (first === undefined) return waiting > 0 ? `free, but ${waiting} wait in its queue` : undefined
  const { label, mode, owner, remaining } = first
  if (isKept(owner) && remaining !== undefined) {
    return `released by ${visible(releaserOf(owner))}, whose minHold keeps it for ${format(remaining)} more`
  }
  const side = mode === "exclusive" ? "" : mode === "read" ? ", which reads" : ", which writes"
  const lease = remaining === undefined ? "without expiry" : `for ${format(remaining)} more unless it is renewed`
  const more = others.length === 0 ? "" : `, and by ${others.length} more`
  const queue = waiting === 0 ? "" : `; ${waiting} wait`
  const who = label === undefined ? visible(owner) : `${visible(label)} (${visible(owner)})`
  return `held by ${who}${side}, ${lease}${more}${queue}`
}
