/**
 * The first page: numbers, the search, and the table.
 */
import { isKept, visible } from "../../visible.ts"
import { el, number, setText, valueOf } from "./elements.ts"
import type { Locks } from "./locks.ts"
import { age, isEnding } from "./shownHolder.ts"
import { hrefOf, Table } from "./table.ts"

/** Of which lock a number is, and since when. */
interface Longest {
  readonly name: string
  readonly since: number
  readonly isOlder: boolean
}

/** A number of one lock, which leads to it. */
class LongestTile {
  readonly #value = valueOf("–")
  readonly #link = el("a", { class: "name" })
  readonly element: HTMLElement

  constructor(title: string) {
    this.element = number(title, this.#value, this.#link)
  }

  show(longest: Longest | undefined, now: number): void {
    setText(this.#value, longest === undefined ? "–" : age(longest.since, longest.isOlder, now))
    setText(this.#link, longest === undefined ? "" : visible(longest.name))
    this.#link.hidden = longest === undefined
    if (longest === undefined) return
    this.#link.href = hrefOf(longest.name)
    this.#link.title = visible(longest.name)
  }
}

const longer = (a: Longest | undefined, b: Longest): Longest => (a === undefined || b.since < a.since ? b : a)

export class ListPage {
  readonly #locks: Locks
  readonly #held = valueOf("–")
  readonly #waiting = valueOf("–")
  readonly #oldest = new LongestTile("held longest")
  readonly #longestWait = new LongestTile("waits longest")
  readonly #ending = valueOf("–")
  readonly #count = el("span", { class: "muted count-shown" })
  readonly search = el("input", {
    type: "search",
    placeholder: "Search names and holders",
    "aria-label": "Search",
    spellcheck: "false",
    autocomplete: "off"
  })
  readonly table: Table
  readonly element: HTMLElement

  constructor(locks: Locks, onChange: () => void) {
    this.#locks = locks
    this.table = new Table(locks, onChange)
    this.element = el(
      "div",
      { class: "list-page" },
      el("h1", { class: "unseen" }, "Held locks"),
      el(
        "div",
        { class: "top" },
        el(
          "div",
          { class: "numbers" },
          number("held", this.#held),
          number("waiting", this.#waiting),
          this.#longestWait.element,
          this.#oldest.element,
          number("leases running out", this.#ending)
        ),
        el("div", { class: "search" }, this.search, el("kbd", {}, "/"), this.#count)
      ),
      this.table.element
    )
    this.search.addEventListener("input", () => {
      locks.search(this.search.value)
      onChange()
    })
  }

  clearSearch(): void {
    this.search.value = ""
    this.#locks.search("")
  }

  draw(): void {
    this.#drawNumbers()
    this.#count.hidden = this.#locks.filter === ""
    setText(this.#count, `${this.#locks.shown().length} of ${this.#locks.size}`)
    this.table.draw()
  }

  #drawNumbers(): void {
    const now = this.#locks.now()
    let waiting = 0
    let ending = 0
    let oldest: Longest | undefined
    let longestWait: Longest | undefined
    for (const lock of this.#locks.values()) {
      waiting += lock.waiting
      const isReleased = isKept(lock.holders[0]?.owner ?? "")
      if (!isReleased && lock.leaseEnds !== null && isEnding(lock.leaseEnds - now, lock.lease)) ending++
      oldest = longer(oldest, lock)
      if (lock.longestWait !== null) longestWait = longer(longestWait, { ...lock.longestWait, name: lock.name })
    }
    setText(this.#held, String(this.#locks.size))
    setText(this.#waiting, String(waiting))
    this.#oldest.show(oldest, now)
    this.#longestWait.show(longestWait, now)
    setText(this.#ending, String(ending))
    this.#ending.toggleAttribute("data-some", ending > 0)
  }
}
