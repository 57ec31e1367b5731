/**
 * A failed world of `pnpm worlds`, opened from its file and played as lanes: who held what, and when.
 */
import { letters } from "../faults.ts"
import { type History, parseHistory } from "../History.ts"
import { button, el, seconds, setText, svg } from "./elements.ts"

const windowMillis = 4000
const laneHeight = 24
/** As in the style sheet. */
const rowHeight = 26
const shownLines = 8

export class HistoryPlayer {
  readonly #message = el("p", { role: "status" })
  readonly #shown = el("div")
  readonly element: HTMLElement
  #stop = () => {}

  constructor() {
    const file = el("input", { type: "file", accept: ".json" })
    file.addEventListener("change", () => void this.#open(file.files?.[0]))
    this.element = el(
      "details",
      {},
      el("summary", {}, "Open the history of a failed world"),
      el(
        "p",
        { class: "note" },
        "Where a simulated world of faults fails, pnpm worlds writes its history into a file."
      ),
      el("label", {}, "History ", file),
      this.#message,
      this.#shown
    )
  }

  async #open(file: File | undefined): Promise<void> {
    if (file === undefined) return
    const history = parseHistory(await file.text())
    this.end()
    setText(
      this.#message,
      history === undefined ? `${file.name} is not such a history.` : `${history.title}: ${history.problem}`
    )
    if (history !== undefined) this.#show(history)
  }

  #show(history: History): void {
    const time = el("input", {
      type: "range",
      min: "0",
      max: String(Math.ceil(history.end)),
      step: "any",
      "aria-label": "Time"
    })
    const clock = el("output", { class: "clock" })
    const play = button("Play", { class: "brand" }, () => (frame === 0 ? start() : stop()))
    const labels = history.lanes.map(() => el("span", { class: "doing" }))
    const log = el("ol", { class: "log" })
    const lanes = svg("svg", {
      class: "lanes",
      viewBox: `0 0 ${windowMillis} ${history.lanes.length * laneHeight}`,
      preserveAspectRatio: "none",
      role: "img"
    })
    lanes.style.height = `${history.lanes.length * rowHeight}px`
    const names = [...new Set(history.lanes.flatMap(({ holds }) => holds.map(({ what }) => what)))]
    let frame = 0

    const draw = () => {
      const now = Number(time.value)
      setText(clock, seconds(now))
      time.setAttribute("aria-valuetext", seconds(now))
      const begin = Math.max(0, now - windowMillis)
      const held = history.lanes.map(({ holds }) => holds.filter(({ from, to = now + 1 }) => from <= now && now < to))
      held.forEach((holds, i) => setText(labels[i]!, holds.map(({ what }) => what).join(" + ")))
      lanes.setAttribute(
        "aria-label",
        history.lanes.map(({ name }, i) => `${name}: ${labels[i]!.textContent || "nothing"}`).join("; ")
      )
      lanes.replaceChildren(
        ...history.lanes.flatMap(({ holds }, lane) =>
          holds
            .filter(({ from, to = now }) => from <= now && to >= begin)
            .map(({ from, to = now, what }) =>
              svg("rect", {
                class: letters[names.indexOf(what) % letters.length]!,
                x: String(Math.max(from, begin) - begin),
                width: String(Math.min(to, now) - Math.max(from, begin)),
                y: String(lane * laneHeight + 4),
                height: String(laneHeight - 8)
              })
            )
        )
      )
      const events = history.events.filter(({ at }) => at <= now).slice(-shownLines)
      log.replaceChildren(
        ...events.toReversed().map(({ at, text }) => el("li", {}, el("time", {}, seconds(at)), " ", text))
      )
    }
    const stop = (this.#stop = () => {
      window.cancelAnimationFrame(frame)
      frame = 0
      setText(play, "Play")
    })
    const start = () => {
      setText(play, "Stop")
      if (Number(time.value) >= history.end) time.value = "0"
      let last = performance.now()
      const next = (at: number) => {
        time.value = String(Math.min(history.end, Number(time.value) + Math.max(0, at - last)))
        last = at
        draw()
        if (Number(time.value) < history.end) frame = window.requestAnimationFrame(next)
        else stop()
      }
      frame = window.requestAnimationFrame(next)
    }
    time.addEventListener("input", () => {
      stop()
      draw()
    })
    // it opens where the world failed
    time.value = String(history.end)
    this.#shown.replaceChildren(
      el("div", { class: "row" }, play, time, clock),
      el(
        "div",
        { class: "chart history" },
        el(
          "div",
          { class: "names" },
          ...history.lanes.map(({ name }, i) => el("div", {}, el("span", { class: "lane" }, name), labels[i]!))
        ),
        lanes
      ),
      log
    )
    draw()
  }

  end(): void {
    this.#stop()
    this.#shown.replaceChildren()
  }
}
