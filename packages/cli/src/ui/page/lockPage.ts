/**
 * The page of one name: who holds it, who waits, and who has held it.
 */
import { isKept, visible } from "../../visible.ts"
import { button, el, setText } from "./elements.ts"
import { type ConnectionState, listen } from "./connection/events.ts"
import { holdChart } from "./holdChart.ts"
import { age, holdOf, isEnding, kindText, labelOf, LeaseBar, shortOwner } from "./shownHolder.ts"
import { verdict } from "./verdict.ts"
import type { Inspected, LockTold } from "./connection/wire.ts"

const shownInList = 100

export interface LockPageOptions {
  readonly name: string
  readonly onFree: () => void
  readonly onState: (state: ConnectionState) => void
  readonly onTrouble: (message: string | null) => void
}

const kinds: Record<string, string> = {
  lock: "lock",
  "fair lock": "fair lock",
  "read-write lock": "read-write lock",
  "permit semaphore": "permit semaphore",
  counter: "latch or semaphore",
  other: "neither a lock, nor a semaphore, nor a latch",
  none: "nobody holds it"
}

const card = (title: string, ...children: ReadonlyArray<Node | string>): HTMLElement =>
  el("section", { class: "card" }, el("h2", {}, title), ...children)

export class LockPage {
  readonly name: string
  readonly #options: LockPageOptions
  readonly #kind = el("span", { class: "chip" })
  readonly #token = el("span", { class: "muted token" })
  readonly #free: HTMLElement
  readonly #verdict = el("div")
  readonly #now = el("div", { class: "cards" })
  readonly #history = card("Hold times")
  readonly element: HTMLElement
  readonly #connection: { readonly close: () => void }
  #told: LockTold | undefined
  /** The longest lease seen of each holder, milliseconds. */
  readonly #leases = new Map<string, number>()

  constructor(options: LockPageOptions) {
    this.name = options.name
    this.#options = options
    this.#free = button("Free this lock", { class: "danger", hidden: "" }, options.onFree)
    this.element = el(
      "article",
      { class: "lock-page" },
      el("a", { class: "back", href: "#/" }, "← All locks"),
      el("div", { class: "title" }, el("h1", {}, visible(options.name)), this.#free),
      el("p", { class: "facts" }, this.#kind, this.#token),
      this.#verdict,
      this.#now,
      this.#history
    )
    this.#connection = listen(`api/lock?name=${encodeURIComponent(options.name)}`, options.onState, {
      lock: (told) => this.#show(told),
      refused: ({ message }) => this.#refuse(message),
      trouble: ({ message }) => options.onTrouble(message)
    })
  }

  /** No lock can have this name: that is no trouble of Redis. */
  #refuse(message: string): void {
    this.close()
    setText(this.#kind, visible(message))
    this.#options.onTrouble(null)
  }

  close(): void {
    this.#connection.close()
  }

  /** What is shown. */
  told(): LockTold | undefined {
    return this.#told
  }

  #leaseBar(id: string, left: number | null): HTMLElement {
    const longest = Math.max(this.#leases.get(id) ?? this.#told?.lease ?? 0, left ?? 0)
    this.#leases.set(id, longest)
    return leaseBar(left, longest, isKept(id))
  }

  #show(told: LockTold): void {
    const { holds, now, state } = told
    this.#told = told
    if (hasSelectionIn(this.element)) return
    setText(this.#kind, kinds[state.kind] ?? state.kind)
    setText(this.#token, state.token === null ? "" : `fencing token ${state.token}`)
    const listed = state.permits.length
    const permits = state.held > listed ? `Free ${listed} permits` : "Free all permits"
    setText(this.#free, state.kind === "permit semaphore" ? permits : "Free this lock")
    this.#free.hidden = !told.mayRelease || (state.holders.length === 0 && state.held === 0)
    this.#verdict.replaceChildren(...verdict(told))
    this.#now.replaceChildren(...cards(told, (id, left) => this.#leaseBar(id, left)))
    const owners = new Set(state.holders.map(({ owner }) => owner))
    for (const id of this.#leases.keys()) if (!owners.has(id)) this.#leases.delete(id)
    const isLock = state.holders.length > 0 || holds.length > 0 || state.kind === "none"
    this.#history.hidden = !isLock
    if (isLock) this.#history.replaceChildren(el("h2", {}, "Hold times"), ...holdChart(holds, state.waiters, now))
    this.#options.onTrouble(null)
  }
}

/** The user is about to copy something: drawing would take it away. */
const hasSelectionIn = (element: HTMLElement): boolean => {
  const selection = getSelection()
  return selection !== null && !selection.isCollapsed && element.contains(selection.anchorNode)
}

const leaseBar = (left: number | null, lease: number, isKept: boolean): HTMLElement => {
  const bar = new LeaseBar()
  bar.show(left, lease, isKept)
  return bar.element
}

/** A bar for an owner. */
type Bar = (id: string, left: number | null) => HTMLElement

const cards = (told: LockTold, bar: Bar): ReadonlyArray<HTMLElement> => {
  const { lease, state } = told
  const { count, held, kind, permits, waiting } = state
  if (kind === "permit semaphore") {
    // the permits of a semaphore have leases alike: one that is not renewed has less left than the others
    const longest = Math.max(lease, ...permits.map(({ remainingMillis }) => remainingMillis ?? 0))
    return [
      card(
        `${held} held, ${count ?? 0} free`,
        list(permits, ({ id, remainingMillis }) => item(undefined, id, [], leaseBar(remainingMillis, longest, false)))
      )
    ]
  }
  if (kind === "counter") {
    return [
      card(
        "Count",
        el("p", { class: "count" }, String(count)),
        el(
          "p",
          { class: "muted" },
          "Of a latch, or the free permits of a semaphore: Redis keeps nothing else of either."
        )
      )
    ]
  }
  return [holdersCard(told, bar), ...(waiting > 0 || kind === "fair lock" ? [waitersCard(state)] : [])]
}

const holdersCard = ({ holds, lease, now, renewedAt, state: { holders } }: LockTold, bar: Bar): HTMLElement => {
  if (holders.length === 0) return card("Holder", el("p", { class: "free" }, "It is free."))
  const title = holders.length === 1 ? "Holder" : `${holders.length} holders`
  return card(
    title,
    list(holders, (holder) => {
      const { holds: times, owner, remainingMillis } = holder
      const hold = holdOf(holds, holder)
      const renewed = renewedAt[owner]
      const facts = [
        hold === undefined ? "" : `for ${age(hold.since, hold.isOlder, now)}`,
        isKept(owner) ? "released, and kept by its minHold" : kindText("", holder, 1),
        times > 1 ? `entered ${times} times` : "",
        renewed === undefined || isEnding(remainingMillis, lease) ? "" : `renewed ${age(renewed, false, now)} ago`
      ]
      return item(labelOf(holder), owner, facts, bar(owner, remainingMillis))
    })
  )
}

/** The end of the title, and what is to be known about the list, by the kind of lock. */
const waitingTexts: Record<string, readonly [title: string, remark: string]> = {
  "fair lock": ["waiting, in this order", ""],
  lock: ["waiting, the longest first", "One of each process; of Redisson's clients, Redis does not know."],
  "read-write lock": [
    "waiting, the longest first",
    "One of each process on each side; of Redisson's clients, Redis does not know."
  ]
}

const waitersCard = ({ kind, waiters, waiting }: Inspected): HTMLElement => {
  if (waiting === 0) return card("Waiting", el("p", { class: "muted" }, "Nobody waits."))
  const [title, remark] = waitingTexts[kind] ?? ["waiting", ""]
  return card(
    `${waiting} ${title}`,
    list(
      waiters,
      ({ isOlder = false, mode, waitedMillis, ...waiter }) =>
        item(labelOf(waiter), waiter.owner, [
          mode === null ? "" : `to ${mode}`,
          waitedMillis === null ? "" : `for ${age(0, isOlder, waitedMillis)}`
        ]),
      true
    ),
    ...(remark === "" ? [] : [el("p", { class: "muted" }, remark)])
  )
}

const list = <A>(all: ReadonlyArray<A>, show: (one: A) => HTMLElement, isQueue = false): HTMLElement => {
  const shown = el("ol", { class: isQueue ? "people queue" : "people" }, ...all.slice(0, shownInList).map(show))
  if (all.length > shownInList) shown.append(el("li", { class: "muted more" }, `and ${all.length - shownInList} more`))
  return shown
}

const item = (
  label: string | undefined,
  owner: string,
  facts: ReadonlyArray<string>,
  ...rest: ReadonlyArray<HTMLElement>
): HTMLElement =>
  el(
    "li",
    {},
    el(
      "div",
      { class: "who" },
      ...(label === undefined ? [] : [el("span", { class: "label" }, label)]),
      // its beginning tells clients apart; redis-lock inspect shows all of it
      el("span", { class: "owner", title: visible(owner) }, label === undefined ? visible(owner) : shortOwner(owner))
    ),
    el("div", { class: "facts" }, facts.filter((fact) => fact !== "").join(", ")),
    ...rest
  )
