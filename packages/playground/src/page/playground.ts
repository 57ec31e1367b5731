/**
 * The playground: both worlds beside each other, and the buttons that make time pass and things go wrong. It is mounted by the front page of the
 * site.
 */
import { type Fault, fromQuery, type Kind, type Letter, letters, type Run, toQuery } from "../faults.ts"
import { load } from "../Network.ts"
import { type LockKind, World } from "../World.ts"
import { button, el, seconds, setText } from "./elements.ts"
import { HistoryPlayer } from "./HistoryPlayer.ts"
import { WorldView } from "./WorldView.ts"

const kinds: ReadonlyArray<LockKind> = ["set-nx", "library"]

/** Runs in which something goes wrong soon. */
const scenarios: ReadonlyArray<{ readonly title: string; readonly query: string }> = [
  { title: "A process is paused", query: "seed=8&faults=3200-pause-A_8200-resume-A" },
  { title: "The bank is slow", query: "seed=1" },
  { title: "Redis restarts empty", query: "seed=8&faults=3200-restart" }
]

const stepMillis = 100
/** The longest that a frame may take, so that a slow machine shows fewer seconds and not fewer pictures. */
const frameMillis = 12
const sliceMillis = 100

/** What a button does to a process, by what it has already done. */
interface Switch {
  readonly isOn: "isStopped" | "isCut" | "isDead"
  readonly on: readonly [Kind, string, (letter: Letter) => string]
  readonly off: readonly [Kind, string, (letter: Letter) => string]
}

const switches: ReadonlyArray<Switch> = [
  {
    isOn: "isStopped",
    on: ["pause", "Pause", (letter) => `Pause process ${letter}`],
    off: ["resume", "Resume", (letter) => `Resume process ${letter}`]
  },
  {
    isOn: "isCut",
    on: ["cut", "Cut off", (letter) => `Cut off process ${letter} from Redis`],
    off: ["mend", "Mend", (letter) => `Mend the connection of process ${letter}`]
  },
  {
    isOn: "isDead",
    on: ["kill", "Kill", (letter) => `Kill process ${letter}`],
    off: ["start", "Start", (letter) => `Start process ${letter} again`]
  }
]

/** Shows a playground in an element; the result ends it. It begins at once, unless the reader prefers less motion. */
export const mount = async (root: HTMLElement): Promise<() => void> => {
  await load()
  const playground = new Playground(root)
  return () => playground.end()
}

class Playground {
  readonly #root: HTMLElement
  readonly #views = kinds.map((kind) => new WorldView(kind))
  readonly #history = new HistoryPlayer()
  readonly #clock = el("output", { class: "clock", "aria-label": "virtual time" })
  readonly #play = button("Play", { class: "brand" }, () => this.#setPlaying(!this.#isPlaying))
  readonly #speed = el("select", { "aria-label": "Speed" })
  readonly #seed = el("input", { type: "number", min: "0", step: "1", inputmode: "numeric" })
  readonly #link = button("Copy link", {}, () => void this.#copyLink())
  readonly #switches: ReadonlyArray<{
    readonly letter: Letter
    readonly of: Switch
    readonly element: HTMLButtonElement
  }>
  #run: Run & { readonly faults: Array<Fault> }
  #worlds: ReadonlyArray<World> = []
  #now = 0
  #isPlaying = false
  #lastFrame = 0
  #frame = 0

  constructor(root: HTMLElement) {
    this.#root = root
    const { search } = window.location
    const asked = new URLSearchParams(search).has("seed") ? search : scenarios[0]!.query
    this.#run = copyOf(fromQuery(asked))
    for (const speed of ["0.25", "0.5", "1", "2", "4", "16"]) {
      this.#speed.append(el("option", { value: speed, ...(speed === "1" ? { selected: "" } : {}) }, `${speed}×`))
    }
    this.#switches = letters.flatMap((letter) =>
      switches.map((of) => ({
        letter,
        of,
        element: button(of.on[1], {}, () => {
          const member = this.#worlds[0]!.members[letter]
          this.#inject({ at: this.#now, kind: (member[of.isOn] ? of.off : of.on)[0], process: letter })
        })
      }))
    )
    this.#seed.addEventListener("change", () => this.#beginQuery(`seed=${this.#seed.value}`))
    root.replaceChildren(
      el(
        "div",
        { class: "row", role: "group", "aria-label": "Runs to watch" },
        el("span", { class: "hint" }, "Watch:"),
        ...scenarios.map(({ query, title }) => button(title, {}, () => this.#beginQuery(query, true)))
      ),
      el(
        "div",
        { class: "row", role: "group", "aria-label": "Time" },
        this.#play,
        button("Step", {}, () => {
          this.#setPlaying(false)
          this.#advanceTo(this.#now + stepMillis)
          this.#draw()
        }),
        button("Replay", {}, () => this.#begin(this.#run)),
        button("Start over", {}, () => this.#begin({ ...this.#run, faults: [] })),
        this.#speed,
        this.#clock
      ),
      el(
        "div",
        { class: "switches" },
        ...letters.map((letter) =>
          el(
            "div",
            { role: "group", "aria-label": `Process ${letter}` },
            el("span", { class: `letter ${letter}` }, letter),
            ...this.#switches.filter((one) => one.letter === letter).map(({ element }) => element)
          )
        ),
        el(
          "div",
          {},
          button("Restart Redis empty", {}, () => this.#inject({ at: this.#now, kind: "restart" }))
        )
      ),
      el("div", { class: "worlds" }, ...this.#views.map(({ element }) => element)),
      el(
        "p",
        { class: "legend" },
        ...[
          ["waiting", "waits for the lock"],
          ["inside", "inside: reads, asks the bank, writes"],
          ["stopped", "paused"],
          ["cut", "cut off from Redis"],
          ["refused", "refused"],
          ["lost", "lock lost"],
          ["overwrote", "deposit lost"]
        ].map(([name, text]) => el("span", {}, el("i", { class: name! }), text!))
      ),
      el("div", { class: "row" }, el("label", {}, "seed ", this.#seed), this.#link),
      this.#history.element
    )
    this.#begin(this.#run, false)
    this.#setPlaying(!window.matchMedia("(prefers-reduced-motion: reduce)").matches)
  }

  #beginQuery(query: string, plays = this.#isPlaying): void {
    this.#begin(fromQuery(query))
    this.#setPlaying(plays)
  }

  /** Begins a run at its beginning. */
  #begin(run: Run, isAsked = true): void {
    this.#run = copyOf(run)
    this.#worlds = kinds.map((kind) => new World(kind, this.#run))
    this.#now = 0
    this.#seed.value = String(run.seed)
    for (const view of this.#views) view.clear()
    if (isAsked) this.#writeAddress()
    this.#draw()
  }

  /** Does it now, in both worlds. */
  #inject(fault: Fault): void {
    const { faults } = this.#run
    const later = faults.findIndex(({ at }) => at > fault.at)
    faults.splice(later === -1 ? faults.length : later, 0, fault)
    this.#advanceTo(this.#now)
    this.#writeAddress()
    this.#draw()
  }

  #writeAddress(): void {
    const { hash, pathname } = window.location
    window.history.replaceState(window.history.state, "", `${pathname}?${toQuery(this.#run)}${hash}`)
    setText(this.#link, "Copy link")
  }

  async #copyLink(): Promise<void> {
    this.#writeAddress()
    try {
      await navigator.clipboard.writeText(window.location.href)
      setText(this.#link, "Copied")
    } catch {
      setText(this.#link, "It is in the address bar")
    }
  }

  #advanceTo(now: number): void {
    this.#now = now
    for (const world of this.#worlds) world.advanceTo(now)
  }

  #setPlaying(isPlaying: boolean): void {
    this.#isPlaying = isPlaying
    setText(this.#play, isPlaying ? "Stop" : "Play")
    window.cancelAnimationFrame(this.#frame)
    if (!isPlaying) return
    this.#lastFrame = performance.now()
    this.#frame = window.requestAnimationFrame((at) => this.#showFrame(at))
  }

  #showFrame(at: number): void {
    // a page that was in the background does not catch up
    const passed = Math.min(100, Math.max(0, at - this.#lastFrame)) * Number(this.#speed.value)
    const to = this.#now + Math.floor(passed)
    if (to > this.#now) {
      this.#lastFrame = at
      const until = performance.now() + frameMillis
      while (this.#now < to && performance.now() < until) this.#advanceTo(Math.min(to, this.#now + sliceMillis))
      this.#draw()
    }
    this.#frame = window.requestAnimationFrame((at) => this.#showFrame(at))
  }

  #draw(): void {
    setText(this.#clock, seconds(this.#now))
    this.#worlds.forEach((world, i) => this.#views[i]!.draw(world))
    for (const { element, letter, of } of this.#switches) {
      const member = this.#worlds[0]!.members[letter]
      const [, text, label] = member[of.isOn] ? of.off : of.on
      setText(element, text)
      if (element.getAttribute("aria-label") !== label(letter)) element.setAttribute("aria-label", label(letter))
      element.disabled = member.isDead && of.isOn !== "isDead"
    }
  }

  end(): void {
    this.#setPlaying(false)
    this.#history.end()
    this.#root.replaceChildren()
  }
}

const copyOf = (run: Run) => ({ ...run, faults: [...run.faults] })
