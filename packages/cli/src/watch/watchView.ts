/**
 * What `redis-lock watch` shows on a terminal: the locks that are held, and what keys do to them.
 */
import { displayWidth } from "effect/cli/CliOutput"
import * as Duration from "effect/Duration"
import type { LockChange, LockState } from "effect-redis-lock"
import { format } from "../duration.ts"
import { after, type HeldLock, leftOf, longestWait, waitingProcesses } from "./heldLock.ts"
import { whoWorksOn } from "../names/release.ts"
import { padded } from "../text.ts"
import { quoted, visible } from "../visible.ts"

const orders = ["name", "age", "lease", "waiters"] as const

export interface View {
  readonly pattern: string
  readonly mayRelease: boolean
  readonly rows: ReadonlyMap<string, HeldLock>
  readonly order: (typeof orders)[number]
  readonly filter: string
  /** What keys do: move and sort, edit the filter, or answer whether to free the selected lock. */
  readonly mode: "list" | "filter" | "confirm"
  readonly selected: string | undefined
  /** What the user was asked whether to free. */
  readonly asked?: LockState
  /** The last thing worth telling, until a key is pressed: a lock was freed, or Redis cannot be reached. */
  readonly message: string
}

export const empty = (pattern: string, mayRelease: boolean): View => ({
  pattern,
  mayRelease,
  rows: new Map(),
  order: "name",
  filter: "",
  mode: "list",
  selected: undefined,
  message: ""
})

export const changed = (view: View, change: LockChange, now: number): View => {
  const { name } = change.state
  const rows = new Map(view.rows)
  const row = after(rows.get(name), change, now)
  if (row === undefined) rows.delete(name)
  else rows.set(name, row)
  return { ...view, rows }
}

const keyOf: Record<View["order"], (row: HeldLock, now: number) => number> = {
  name: () => 0,
  age: ({ since }) => since,
  lease: (row, now) => leftOf(row, now) ?? Number.POSITIVE_INFINITY,
  waiters: ({ state }) => -waitingProcesses(state)
}

/** The rows that are shown, in their order. */
export const shownRows = ({ filter, order, rows }: View, now: number): ReadonlyArray<HeldLock> => {
  const key = keyOf[order]
  const wanted = filter.toLowerCase()
  return [...rows.values()]
    .filter(({ state: { holders, name } }) =>
      [name, ...holders.flatMap(({ label = "", owner }) => [label, owner])].some((text) =>
        text.toLowerCase().includes(wanted)
      )
    )
    .sort((a, b) => key(a, now) - key(b, now) || (a.state.name < b.state.name ? -1 : 1))
}

/** The selected row, or the first one. */
const selectedIn = ({ selected }: View, shown: ReadonlyArray<HeldLock>): HeldLock | undefined =>
  shown.find(({ state }) => state.name === selected) ?? shown[0]

export interface Pressed {
  readonly view: View
  /** What is to be done: leave, or free a lock from those who held it when the user was asked. */
  readonly todo?: "quit" | LockState
}

const interruptKey = "\u0003"

/** Of the list, where they are not text. */
const quitKeys = new Set(["q", "\u0004"])

export const pressed = (view: View, key: string, now: number): Pressed => {
  if (key === interruptKey) return { view, todo: "quit" }
  switch (view.mode) {
    case "filter":
      return { view: filtering(view, key) }
    case "confirm": {
      const { asked } = view
      const next: View = { ...view, mode: "list" }
      return key.toLowerCase() === "y" && asked !== undefined && view.rows.has(asked.name)
        ? { view: next, todo: asked }
        : { view: next }
    }
    case "list": {
      if (quitKeys.has(key)) return { view, todo: "quit" }
      return { view: { ...listing(view, key, now), message: "" } }
    }
  }
}

const escapeKey = "\u001b"

const filtering = (view: View, key: string): View => {
  if (key === "\r" || key === "\n") return { ...view, mode: "list" }
  if (key === escapeKey) return { ...view, mode: "list", filter: "" }
  if (key === "\u007f" || key === "\b") return { ...view, filter: Array.from(view.filter).slice(0, -1).join("") }
  return /^[^\p{Cc}]+$/u.test(key) ? { ...view, filter: view.filter + key } : view
}

const listing = (view: View, key: string, now: number): View => {
  const shown = shownRows(view, now)
  const row = selectedIn(view, shown)
  const moved = (by: number): View => {
    const index = row === undefined ? -1 : shown.indexOf(row)
    const to = shown[Math.min(Math.max(index + by, 0), shown.length - 1)]
    return { ...view, selected: to?.state.name }
  }
  switch (key) {
    case "s":
      return { ...view, order: orders[(orders.indexOf(view.order) + 1) % orders.length]! }
    case "/":
      return { ...view, mode: "filter" }
    case escapeKey:
      return { ...view, filter: "" }
    case "j":
    case "\u001b[B":
      return moved(1)
    case "k":
    case "\u001b[A":
      return moved(-1)
    case "f":
      return view.mayRelease && row !== undefined
        ? { ...view, mode: "confirm", selected: row.state.name, asked: row.state }
        : view
    default:
      return view
  }
}

const barWidth = 10

const barOf = (left: number | undefined, lease: number): string => {
  if (left === undefined) return "no expiry "
  const full = lease === 0 ? 0 : Math.ceil((left / lease) * barWidth)
  return "#".repeat(full) + ".".repeat(barWidth - full)
}

const titles = ["NAME", "HOLDER", "AGE", "LEASE", "", "WAITING"]

const cellsOf = (row: HeldLock, now: number): ReadonlyArray<string> => {
  const { isOlder, lease, since, state } = row
  const left = leftOf(row, now)
  const age = `${isOlder ? ">" : ""}${format(Duration.millis(Math.max(0, now - since)))}`
  return [
    visible(state.name),
    holderOf(state),
    age,
    barOf(left, lease),
    left === undefined ? "" : format(Duration.millis(left)),
    waitingText(row, now)
  ]
}

/** How many processes wait, and for how long the one that has waited longest. */
const waitingText = (row: HeldLock, now: number): string => {
  const wait = longestWait(row)
  const count = String(waitingProcesses(row.state))
  if (wait === undefined) return count
  return `${count}, ${wait.isOlder ? ">" : ""}${format(Duration.millis(Math.max(0, now - wait.since)))}`
}

const holderOf = ({ held, holders: [first, ...others] }: LockState): string =>
  first === undefined
    ? `${held} permit${held === 1 ? "" : "s"}`
    : visible(first.label ?? first.owner) + (others.length === 0 ? "" : ` and ${others.length} more`)

/** As many characters as fit. */
const cut = (text: string, width: number): string => {
  if (displayWidth(text) <= width) return text
  let kept = ""
  for (const character of text) {
    if (displayWidth(kept + character) > width) break
    kept += character
  }
  return kept
}

const gap = "  "

/** Names and holders share what the other columns leave of the width, or half of it if that is more. */
const fitting = ([name, holder, ...others]: ReadonlyArray<number>, columns: number): ReadonlyArray<number> => {
  const left = columns - others.reduce((sum, width) => sum + gap.length + width, gap.length)
  const shared = Math.max(left, Math.floor(columns / 2))
  const ofName = Math.min(name!, Math.max(Math.floor(shared / 2), shared - holder!))
  return [ofName, Math.min(holder!, shared - ofName), ...others]
}

const reversed = (text: string): string => `\u001b[7m${text}\u001b[27m`

/** The lines of one picture, none longer than the terminal is wide, and no more than it has lines. */
export const frame = (
  view: View,
  size: { readonly columns: number; readonly rows: number },
  now: number
): ReadonlyArray<string> => {
  const shown = shownRows(view, now)
  const selected = selectedIn(view, shown)
  const room = Math.max(1, size.rows - 3)
  const start = Math.max(0, (selected === undefined ? 0 : shown.indexOf(selected)) - room + 1)
  const cells = shown.slice(start, start + room).map((row) => cellsOf(row, now))
  const widths = fitting(
    titles.map((title, i) => Math.max(...[title, ...cells.map((row) => row[i]!)].map(displayWidth))),
    size.columns
  )
  const line = (row: ReadonlyArray<string>) =>
    cut(row.map((cell, i) => padded(cut(cell, widths[i]!), widths[i]!)).join(gap), size.columns)
  const isMarked = (i: number) => shown[start + i] === selected
  const head = [cut(headOf(view, shown.length), size.columns), line(titles)].slice(0, Math.max(0, size.rows - 2))
  const body = cells.map((row, i) => (isMarked(i) ? reversed(line(row)) : line(row)))
  // on the last line stands what keys do, and the question
  return [...head, ...body, cut(footOf(view), size.columns)].slice(-size.rows)
}

const headOf = ({ filter, order, pattern, rows }: View, shown: number): string => {
  const filtered = filter === "" ? "" : `, ${shown} match "${visible(filter)}"`
  return `${rows.size} held of ${visible(pattern)}${filtered}, by ${order}`
}

const footOf = ({ asked, filter, mayRelease, message, mode }: View): string => {
  switch (mode) {
    case "filter":
      return `filter: ${visible(filter)}_  (Enter keeps it, Esc clears it)`
    case "confirm":
      // begins with the keys: a narrow terminal cuts the rest
      return `[y/N] Free ${quoted(asked!.name)}? ${whoWorksOn(asked!)}`
    case "list":
      return message !== "" ? message : keysOf(filter !== "", mayRelease)
  }
}

const keysOf = (isFiltered: boolean, mayRelease: boolean): string =>
  [
    "q quit",
    "s sort",
    "/ filter",
    ...(isFiltered ? ["Esc all"] : []),
    "j k select",
    ...(mayRelease ? ["f free"] : [])
  ].join(gap)
