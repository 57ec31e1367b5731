/**
 * The first page: numbers, the search, and the table.
 */
import { span } from "../../span.ts"
import { visible } from "../../visible.ts"
import { el, setText } from "./elements.ts"
import type { Locks } from "./locks.ts"
import { Table } from "./table.ts"

/** A lease of which less than this is left is not renewed, or late. */
const endingPart = 0.4

export class ListPage {
  readonly #locks: Locks
  readonly #held = el("span", { class: "value" }, "–")
  readonly #waiting = el("span", { class: "value" }, "–")
  readonly #oldest = el("span", { class: "value" }, "–")
  readonly #ending = el("span", { class: "value" }, "–")
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
    const number = (title: string, value: HTMLElement) =>
      el("div", { class: "number" }, value, el("span", { class: "what" }, title))
    this.element = el(
      "div",
      { class: "list-page" },
      el(
        "div",
        { class: "top" },
        el(
          "div",
          { class: "numbers" },
          number("held", this.#held),
          number("waiting", this.#waiting),
          number("held longest", this.#oldest),
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
    let oldest: { readonly since: number; readonly isOlder: boolean; readonly name: string } | undefined
    for (const lock of this.#locks.values()) {
      waiting += lock.waiting
      if (lock.leaseEnds !== null && lock.leaseEnds - now < lock.lease * endingPart) ending++
      if (oldest === undefined || lock.since < oldest.since) oldest = lock
    }
    setText(this.#held, String(this.#locks.size))
    setText(this.#waiting, String(waiting))
    setText(this.#oldest, oldest === undefined ? "–" : `${oldest.isOlder ? "≥ " : ""}${span(now - oldest.since)}`)
    this.#oldest.title = oldest === undefined ? "" : visible(oldest.name)
    setText(this.#ending, String(ending))
    this.#ending.toggleAttribute("data-some", ending > 0)
  }
}
