/**
 * For how long a lock has been held, hold after hold: bars, and what they say in numbers.
 */
import { span } from "../../span.ts"
import { visible } from "../../visible.ts"
import { el } from "./elements.ts"
import { age, nameOf } from "./shownHolder.ts"
import type { Hold } from "./connection/wire.ts"

const shownBars = 60
const shownRows = 12

const lengthOf = ({ since, until }: Hold, now: number): number => Math.max(0, (until ?? now) - since)

/** As a clock here shows it; with the day if it is another one. */
const timeText = (millis: number): string => {
  const time = new Date(millis)
  const text = time.toLocaleTimeString([], { hour12: false })
  return time.toDateString() === new Date().toDateString() ? text : `${time.toLocaleDateString()} ${text}`
}

const number = (title: string, value: string): HTMLElement =>
  el("div", { class: "number" }, el("span", { class: "value" }, value), el("span", { class: "what" }, title))

/** Holds that last come first, and then those that have ended, the last one first. */
export const holdChart = (holds: ReadonlyArray<Hold>, now: number): ReadonlyArray<HTMLElement> => {
  if (holds.length === 0) return [el("p", { class: "muted" }, "Nobody has held it since this server looks.")]
  const lengths = holds
    .filter(({ until }) => until !== null)
    .map((hold) => lengthOf(hold, now))
    .sort((a, b) => a - b)
  const median = lengths[Math.floor(lengths.length / 2)]
  const last = table(holds.slice(0, shownRows), now)
  if (median === undefined) return [last]
  const longest = Math.max(...holds.map((hold) => lengthOf(hold, now)))
  return [
    el(
      "div",
      { class: "numbers" },
      number(lengths.length === 1 ? "last hold" : "last holds", String(lengths.length)),
      number("median", span(median)),
      number("longest", span(longest))
    ),
    bars(holds.slice(0, shownBars).toReversed(), longest, now),
    last
  ]
}

const bars = (holds: ReadonlyArray<Hold>, longest: number, now: number): HTMLElement => {
  const chart = el("div", {
    class: "bars",
    role: "img",
    "aria-label": `The last ${holds.length} holds, longest ${span(longest)}`
  })
  for (const hold of holds) {
    const length = lengthOf(hold, now)
    const bar = el("span", { class: hold.until === null ? "bar-now" : "bar-over" })
    bar.style.height = `${longest === 0 ? 2 : Math.max(2, (length / longest) * 100).toFixed(1)}%`
    bar.title = `${nameOf(hold)}: ${age(hold.since, hold.isOlder, hold.until ?? now)}, from ${timeText(hold.since)}`
    chart.append(bar)
  }
  return chart
}

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
