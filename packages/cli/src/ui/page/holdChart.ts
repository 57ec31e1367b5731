/**
 * Who has held a lock, when, and for how long: a lane for each, what they say in numbers, and a table.
 */
import { span } from "../../span.ts"
import { clientOf, visible } from "../../visible.ts"
import { el, number, valueOf } from "./elements.ts"
import { age, labelOf, nameOf, shortOwner } from "./shownHolder.ts"
import type { Hold, Holder, Waiter } from "./connection/wire.ts"

const shownHolds = 40
const shownLanes = 8
const shownRows = 12

const lengthOf = ({ since, until }: Hold, now: number): number => Math.max(0, (until ?? now) - since)

/** As a clock here shows it; with the day if it is another one. */
const timeText = (millis: number): string => {
  const time = new Date(millis)
  const text = time.toLocaleTimeString([], { hour12: false })
  return time.toDateString() === new Date().toDateString() ? text : `${time.toLocaleDateString()} ${text}`
}

/** Holds that last come first, and then those that have ended, the last one first. */
export const holdChart = (
  holds: ReadonlyArray<Hold>,
  waiters: ReadonlyArray<Waiter>,
  now: number
): ReadonlyArray<HTMLElement> => {
  if (holds.length === 0) return [el("p", { class: "muted" }, "Nobody has held it since redis-lock ui was started.")]
  const lengths = holds
    .filter(({ until }) => until !== null)
    .map((hold) => lengthOf(hold, now))
    .sort((a, b) => a - b)
  const median = lengths[Math.floor(lengths.length / 2)]
  const last = table(holds.slice(0, shownRows), now)
  const chart = lanes(holds, waiters, now)
  if (median === undefined) return [chart, last]
  const longest = Math.max(...holds.map((hold) => lengthOf(hold, now)))
  return [
    el(
      "div",
      { class: "numbers" },
      number(lengths.length === 1 ? "last hold" : "last holds", valueOf(String(lengths.length))),
      number("median", valueOf(span(median))),
      number("longest", valueOf(span(longest)))
    ),
    chart,
    last
  ]
}

interface Span {
  readonly kind: "held" | "now" | "waits"
  readonly since: number
  readonly until: number
  readonly title: string
}

/** What each client did, under its label. */
const lanesOf = (
  holds: ReadonlyArray<Hold>,
  waiters: ReadonlyArray<Waiter>,
  now: number
): ReadonlyArray<readonly [name: string, spans: ReadonlyArray<Span>]> => {
  const lanes = new Map<string, Array<Span>>()
  const add = (who: Pick<Holder, "label" | "owner">, span: Span) => {
    const name = labelOf(who) ?? shortOwner(clientOf(who.owner))
    lanes.set(name, [...(lanes.get(name) ?? []), span])
  }
  for (const hold of holds.slice(0, shownHolds)) {
    const { isOlder, mode, since, until } = hold
    const end = until ?? now
    const side = mode === "exclusive" ? "" : `${mode}, `
    const title = `${nameOf(hold)}: ${side}${age(since, isOlder, end)}, from ${timeText(since)}`
    add(hold, { kind: until === null ? "now" : "held", since, until: end, title })
  }
  for (const waiter of waiters) {
    const { isOlder = false, waitedMillis } = waiter
    if (waitedMillis === null) continue
    const title = `${nameOf(waiter)}: waits, ${age(0, isOlder, waitedMillis)}`
    add(waiter, { kind: "waits", since: now - waitedMillis, until: now, title })
  }
  const all = [...lanes]
  const others = all.slice(shownLanes).flatMap(([, spans]) => spans)
  return [
    // in an order that stays when the lock is handed over
    ...all.slice(0, shownLanes).sort(([a], [b]) => (a < b ? -1 : 1)),
    ...(others.length === 0 ? [] : [[`${all.length - shownLanes} others`, others] as const])
  ]
}

/** A lane for each client, from the first of the last holds until now. The table below tells the same to those who do not see it. */
const lanes = (holds: ReadonlyArray<Hold>, waiters: ReadonlyArray<Waiter>, now: number): HTMLElement => {
  const all = lanesOf(holds, waiters, now)
  const from = Math.min(now - 1, ...all.flatMap(([, spans]) => spans.map(({ since }) => since)))
  const part = (millis: number): string => `${((millis / (now - from)) * 100).toFixed(2)}%`
  const chart = el("div", {
    class: "lanes",
    role: "img",
    "aria-label": `Who has held it since ${timeText(from)}, and who waits: ${all.map(([name]) => name).join(", ")}`
  })
  for (const [name, spans] of all) {
    const track = el("span", { class: "lane-track" })
    for (const { kind, since, title, until } of spans) {
      const one = el("span", { class: `span-${kind}`, title })
      // what lasts ends at the edge, however short it is
      if (until === now) one.style.inset = "2px 0 2px auto"
      else one.style.left = part(since - from)
      one.style.width = part(Math.max(0, until - since))
      track.append(one)
    }
    chart.append(el("div", { class: "lane" }, el("span", { class: "lane-name", title: name }, name), track))
  }
  chart.append(
    el(
      "div",
      { class: "axis" },
      el("span", {}, timeText(from)),
      el("span", { class: "key" }, ...keys.flatMap(([kind, text]) => [el("i", { class: `span-${kind}` }), text])),
      el("span", {}, "now")
    )
  )
  return chart
}

const keys = [
  ["held", "held"],
  ["now", "holds"],
  ["waits", "waits"]
] as const

const table = (holds: ReadonlyArray<Hold>, now: number): HTMLElement =>
  el(
    "table",
    { class: "holds" },
    el(
      "thead",
      {},
      el("tr", {}, ...["Holder", "From", "Until", "Held for"].map((title) => el("th", { scope: "col" }, title)))
    ),
    el(
      "tbody",
      {},
      ...holds.map((hold) =>
        el(
          "tr",
          {},
          el(
            "td",
            { title: visible(hold.owner) },
            nameOf(hold),
            ...(hold.mode === "exclusive" ? [] : [el("span", { class: "chip" }, hold.mode)])
          ),
          el("td", {}, hold.isOlder ? `before ${timeText(hold.since)}` : timeText(hold.since)),
          el("td", {}, hold.until === null ? el("span", { class: "live" }, "now") : timeText(hold.until)),
          el("td", {}, age(hold.since, hold.isOlder, hold.until ?? now))
        )
      )
    )
  )
