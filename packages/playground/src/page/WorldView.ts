/**
 * One of the two worlds, as it is drawn: the last seconds of each process as a lane, the holder, the balance, and what went wrong.
 */
import type { Letter } from "../faults.ts"
import { letters } from "../faults.ts"
import type { Happening, LockKind, Member, Span, World } from "../World.ts"
import { el, seconds, setText, svg } from "./elements.ts"

const windowMillis = 12_000
const laneHeight = 24
const shownLines = 5

const lanes = [...letters, "Redis"] as const

interface Drawn {
  readonly title: string
  readonly note: string
}

const titles: Readonly<Record<LockKind, Drawn>> = {
  "set-nx": { title: "SET NX with a fixed lease", note: "A lease of 3 s that nobody renews; asks again every 200 ms." },
  library: {
    title: "effect-redis-lock",
    note: "The same lease, renewed while the section runs; a token for each grant."
  }
}

/** How a happening reads. */
const words = ({ deposits = 0, kind, process }: Happening): string => {
  switch (kind) {
    case "pause":
      return `${process} is paused`
    case "resume":
      return `${process} goes on`
    case "cut":
      return `${process} is cut off from Redis`
    case "mend":
      return `${process} reaches Redis again`
    case "kill":
      return `${process} is killed`
    case "start":
      return `${process} is started again`
    case "restart":
      return "Redis restarts without its data"
    case "lost":
      return `${process} has lost the lock: its section is interrupted, and fails with LockLost`
    case "refused":
      return `The ledger refuses ${process}: its token is stale`
    case "overwrote":
      return `${process} overwrites ${deposits === 1 ? "a deposit" : `${deposits} deposits`}: it no longer has the lock`
  }
}

export class WorldView {
  readonly element: HTMLElement
  readonly #canvas = svg("svg", {
    class: "lanes",
    viewBox: `0 0 ${windowMillis} ${lanes.length * laneHeight}`,
    preserveAspectRatio: "none",
    role: "img"
  })
  readonly #labels = lanes.map(() => el("span", { class: "doing" }))
  readonly #made = el("b")
  readonly #balance = el("b")
  readonly #lost = el("b", { class: "lost" })
  readonly #log = el("ol", { class: "log" })
  #logged = 0

  constructor(lock: LockKind) {
    const { note, title } = titles[lock]
    this.element = el(
      "section",
      { class: "world", "data-lock": lock, "aria-label": title },
      el("h3", {}, title),
      el("p", { class: "note" }, note),
      el(
        "p",
        { class: "score" },
        el("span", {}, "deposits ", this.#made),
        el("span", {}, "balance ", this.#balance),
        el("span", {}, "lost ", this.#lost)
      ),
      el(
        "div",
        { class: "chart" },
        el(
          "div",
          { class: "names" },
          ...lanes.map((lane, i) =>
            el("div", { "data-lane": lane }, el("span", { class: "lane" }, lane), this.#labels[i]!)
          )
        ),
        this.#canvas
      ),
      this.#log
    )
  }

  draw(world: World): void {
    const { ledger, time } = world
    setText(this.#made, String(ledger.accepted))
    setText(this.#balance, String(ledger.balance))
    setText(this.#lost, String(ledger.lost))
    this.element.dataset["lost"] = String(ledger.lost > 0)
    const doing = letters.map((letter) => doingOf(world.members[letter]))
    const holder = world.holders.at(-1)
    doing.push(holder === undefined || holder.to! <= time.now ? "free" : `${holder.what} holds it`)
    doing.forEach((text, i) => setText(this.#labels[i]!, text))
    this.#canvas.setAttribute("aria-label", lanes.map((lane, i) => `${lane}: ${doing[i]}`).join(", "))
    this.#canvas.replaceChildren(...this.#marks(world))
    this.#writeLog(world.happenings)
  }

  #marks(world: World): ReadonlyArray<SVGElement> {
    const end = world.time.now
    const begin = Math.max(0, end - windowMillis)
    const marks: Array<SVGElement> = []
    const bar = (lane: number, height: number, span: Span<unknown>, name: string, letter?: Letter) => {
      const from = Math.max(begin, span.from)
      const width = Math.min(end, span.to ?? end) - from
      if (width <= 0) return
      marks.push(
        svg("rect", {
          class: letter === undefined ? name : `${name} ${letter}`,
          x: String(from - begin),
          width: String(width),
          y: String(lane * laneHeight + (laneHeight - height) / 2),
          height: String(height)
        })
      )
    }
    const line = (at: number, name: string, from: number, to: number) => {
      const x = String(at - begin)
      marks.push(svg("line", { class: name, x1: x, x2: x, y1: String(from * laneHeight), y2: String(to * laneHeight) }))
    }
    for (let at = Math.ceil(begin / 1000) * 1000; at <= begin + windowMillis; at += 1000) {
      line(at, at % 5000 === 0 ? "tick fifth" : "tick", 0, lanes.length)
    }
    letters.forEach((letter, lane) => {
      const { cuts, states, stops } = world.members[letter]
      for (const span of since(states, begin)) {
        if (span.what === "waiting") bar(lane, 3, span, "waiting", letter)
        if (span.what === "inside") bar(lane, 16, span, "inside", letter)
      }
      for (const span of since(stops, begin)) bar(lane, 20, span, span.what)
      for (const span of since(cuts, begin)) bar(lane, 22, span, "cut")
    })
    for (const span of since(world.holders, begin)) bar(letters.length, 12, span, "holder", span.what)
    for (const happening of backwards(world.happenings)) {
      if (happening.at < begin) break
      const lane = happening.process === undefined ? letters.length : letters.indexOf(happening.process)
      line(happening.at, happening.kind, lane, lane + 1)
    }
    return marks
  }

  #writeLog(happenings: ReadonlyArray<Happening>): void {
    for (; this.#logged < happenings.length; this.#logged++) {
      const happening = happenings[this.#logged]!
      this.#log.prepend(
        el("li", { class: happening.kind }, el("time", {}, seconds(happening.at)), " ", words(happening))
      )
      while (this.#log.children.length > shownLines) this.#log.lastElementChild!.remove()
    }
  }

  /** Forgets what it has shown of another world. */
  clear(): void {
    this.#log.replaceChildren()
    this.#logged = 0
  }
}

const doingOf = ({ isCut, isDead, isStopped, states }: Member): string => {
  if (isDead) return "dead"
  const state = states.at(-1)?.what ?? "resting"
  return `${isStopped ? "paused" : state}${isCut ? ", cut off" : ""}`
}

function* backwards<A>(items: ReadonlyArray<A>): Iterable<A> {
  for (let i = items.length - 1; i >= 0; i--) yield items[i]!
}

/** The spans that have not ended before, the last one first. */
function* since<A>(spans: ReadonlyArray<Span<A>>, begin: number): Iterable<Span<A>> {
  for (const span of backwards(spans)) {
    if (span.to !== undefined && span.to < begin) return
    yield span
  }
}
