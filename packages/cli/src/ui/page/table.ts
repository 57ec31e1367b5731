/**
 * The table of held locks. Only the rows that can be seen are in the document, however many locks there are.
 */
import { isKept, visible } from "../../visible.ts"
import { button, el, setText } from "./elements.ts"
import { type Locks, type Order, orders } from "./locks.ts"
import { age, kindText, labelOf, LeaseBar, shortOwner } from "./shownHolder.ts"
import type { LockLine } from "./connection/wire.ts"

const titles: Record<Order, string> = {
  name: "Lock",
  holder: "Holder",
  age: "Held for",
  lease: "Lease",
  waiting: "Waiting"
}

const explained: Partial<Record<Order, string>> = {
  waiting: "How many processes wait, as far as Redis knows, and for how long the one that has waited longest",
  lease: "What is left of it; of a semaphore, of the permit that ends first"
}

/** Rows above and below those that can be seen, so that scrolling shows no gap. */
const spare = 4

export const hrefOf = (name: string): string => `#/lock/${encodeURIComponent(name)}`

export class Table {
  readonly #locks: Locks
  readonly #heads: ReadonlyArray<HTMLElement>
  readonly #space = el("div", { class: "space" })
  readonly #nothing = el("div", { class: "nothing", hidden: "" })
  readonly #head = el("div", { class: "head row", role: "row" })
  readonly #body = el(
    "div",
    { class: "rows", tabindex: "0", role: "grid", "aria-label": "Held locks" },
    this.#head,
    this.#space
  )
  readonly element = el("div", { class: "table" }, this.#body, this.#nothing)
  readonly #rows: Array<Row> = []
  #selected: string | undefined

  constructor(locks: Locks, onChange: () => void) {
    this.#locks = locks
    this.#heads = orders.map((order) => {
      const sort = button(titles[order], {}, () => {
        locks.sortBy(order)
        onChange()
      })
      return el("div", { role: "columnheader", class: `head-${order}`, title: explained[order] ?? "" }, sort)
    })
    this.#head.append(...this.#heads)
    this.#body.addEventListener("scroll", onChange, { passive: true })
    new ResizeObserver(onChange).observe(this.#body)
  }

  /** The lock that keys apply to. */
  selected(): LockLine | undefined {
    return this.#selected === undefined ? undefined : this.#locks.get(this.#selected)
  }

  focus(): void {
    this.#body.focus({ preventScroll: true })
  }

  /** Selects another row, so many further down. */
  move(by: number): void {
    const shown = this.#locks.shown()
    if (shown.length === 0) return
    const from = shown.findIndex(({ name }) => name === this.#selected)
    const to = from === -1 ? (by < 0 ? shown.length - 1 : 0) : Math.max(0, Math.min(shown.length - 1, from + by))
    this.#selected = shown[to]!.name
    const top = to * this.#rowHeight()
    const hidden = top + this.#rowHeight() - this.#bodyHeight()
    this.#body.scrollTop = Math.max(hidden, Math.min(top, this.#body.scrollTop))
  }

  /** How many rows fit. */
  page(): number {
    return Math.max(1, Math.floor(this.#bodyHeight() / this.#rowHeight()) - 1)
  }

  draw(): void {
    const shown = this.#locks.shown()
    const height = this.#rowHeight()
    const first = Math.max(0, Math.floor(this.#body.scrollTop / height) - spare)
    const last = Math.min(shown.length, Math.ceil((this.#body.scrollTop + this.#body.clientHeight) / height) + spare)
    const now = this.#locks.now()
    this.#space.style.height = `${shown.length * height}px`
    this.#body.setAttribute("aria-rowcount", String(shown.length + 1))
    while (this.#rows.length < last - first) {
      const row = new Row()
      this.#rows.push(row)
      this.#space.append(row.element)
    }
    for (const row of this.#rows.splice(Math.max(0, last - first))) row.element.remove()
    for (const [i, row] of this.#rows.entries()) {
      const lock = shown[first + i]!
      row.show(lock, first + i, { now, top: (first + i) * height, isSelected: lock.name === this.#selected })
    }
    this.#drawHead()
    this.#drawNothing(shown.length === 0)
  }

  #drawHead(): void {
    for (const [i, order] of orders.entries()) {
      const isOrder = order === this.#locks.order
      const sort = isOrder ? (this.#locks.isReversed ? "descending" : "ascending") : "none"
      this.#heads[i]!.setAttribute("aria-sort", sort)
    }
  }

  #drawNothing(isEmpty: boolean): void {
    this.#nothing.hidden = !isEmpty
    const { filter } = this.#locks
    setText(
      this.#nothing,
      filter === ""
        ? "Nobody holds a lock at the moment."
        : `No held lock matches “${visible(filter)}”. Enter looks the name up, also a semaphore’s or a latch’s.`
    )
  }

  /** Without the head, which stays above the rows. */
  #bodyHeight(): number {
    return this.#body.clientHeight - this.#head.offsetHeight
  }

  #rowHeight(): number {
    return Number.parseFloat(getComputedStyle(this.element).getPropertyValue("--row")) || 44
  }
}

interface Place {
  readonly now: number
  /** Pixels from the top of all rows. */
  readonly top: number
  readonly isSelected: boolean
}

class Row {
  readonly #link = el("a", { class: "name" })
  readonly #kind = el("span", { class: "chip" })
  readonly #label = el("span", { class: "label" })
  readonly #owner = el("span", { class: "owner" })
  readonly #age = el("span", { role: "gridcell", class: "age" })
  readonly #lease = new LeaseBar()
  readonly #count = el("span", { class: "waiting-count" })
  readonly #waits = el("span", { class: "waits" })
  readonly #waiting = el("span", { role: "gridcell", class: "waiting" }, this.#count, this.#waits)
  readonly element = el(
    "div",
    { class: "row", role: "row" },
    el("span", { role: "gridcell", class: "cell lock" }, this.#link, this.#kind),
    el("span", { role: "gridcell", class: "cell holder" }, this.#label, this.#owner),
    this.#age,
    el("span", { role: "gridcell", class: "cell" }, this.#lease.element),
    this.#waiting
  )
  #lock: LockLine | undefined

  constructor() {
    // the whole row leads to the lock's page
    this.element.addEventListener("click", ({ target }) => {
      if (target !== this.#link && this.#lock !== undefined) location.hash = hrefOf(this.#lock.name)
    })
  }

  show(lock: LockLine, index: number, { isSelected, now, top }: Place): void {
    if (lock !== this.#lock) this.#showLock(lock)
    this.element.style.transform = `translateY(${top}px)`
    this.element.setAttribute("aria-rowindex", String(index + 2))
    this.element.toggleAttribute("data-selected", isSelected)
    setText(this.#age, age(lock.since, lock.isOlder, now))
    const [first] = lock.holders
    this.#lease.show(
      lock.leaseEnds === null ? null : lock.leaseEnds - now,
      lock.lease,
      first !== undefined && isKept(first.owner)
    )
    const wait = lock.longestWait === null ? "" : `, ${age(lock.longestWait.since, lock.longestWait.isOlder, now)}`
    setText(this.#waits, wait)
  }

  #showLock(lock: LockLine): void {
    this.#lock = lock
    const [first] = lock.holders
    const name = visible(lock.name)
    setText(this.#link, name)
    this.#link.title = name
    this.#link.href = hrefOf(lock.name)
    const kind = kindText(lock.kind, first, lock.holderCount)
    setText(this.#kind, kind)
    this.#kind.hidden = kind === ""
    const others = lock.holderCount > 1 ? ` and ${lock.holderCount - 1} more` : ""
    const label = first === undefined ? undefined : labelOf(first)
    const permits = lock.permits === 0 ? "" : `${lock.permits} permit${lock.permits === 1 ? "" : "s"}`
    setText(this.#label, label === undefined ? permits : label + others)
    this.#label.hidden = label === undefined && permits === ""
    setText(this.#owner, shortOwner(first?.owner ?? "") + (label === undefined ? others : ""))
    this.#owner.title = visible(first?.owner ?? "")
    setText(this.#count, lock.waiting === 0 ? "" : String(lock.waiting))
    this.#waiting.toggleAttribute("data-some", lock.waiting > 0)
  }
}
