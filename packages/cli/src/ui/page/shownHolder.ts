/**
 * A holder or a waiter, a lease and an age, as they are shown.
 */
import { span } from "../../span.ts"
import { isKept, releaserOf, visible } from "../../visible.ts"
import { el, setText } from "./elements.ts"
import type { Hold, Holder } from "./connection/wire.ts"

/** An owner is `<client id>:<id>`: the beginning tells clients apart. */
export const shortOwner = (owner: string): string =>
  visible(releaserOf(owner).replace(/^([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/i, "$1…"))

/** How a client calls itself, if Redis knows. */
export const labelOf = ({ label }: { readonly label?: string | null | undefined }): string | undefined =>
  label === undefined || label === null || label === "" ? undefined : visible(label)

/** Who it is, in a word. */
export const nameOf = (holder: { readonly owner: string; readonly label?: string | null | undefined }): string =>
  labelOf(holder) ?? shortOwner(holder.owner)

/** The hold that lasts of a holder. */
export const holdOf = (holds: ReadonlyArray<Hold>, { mode, owner }: Holder): Hold | undefined =>
  holds.find((hold) => hold.until === null && hold.owner === owner && hold.mode === mode)

/** `≥` if it was held before the server looked. */
export const age = (since: number, isOlder: boolean, until: number): string =>
  `${isOlder ? "≥ " : ""}${span(Math.max(0, until - since))}`

/** A lease of which less than this is left is not renewed: a watchdog renews it when two thirds are left. */
const endingPart = 0.4

/** Whether a lease runs out. `left` is `null` where there is no expiry; both are milliseconds. */
export const isEnding = (left: number | null, lease: number): boolean => left !== null && left < lease * endingPart

/** A bar for what is left of a lease, and the time. */
export class LeaseBar {
  readonly #fill = el("span", { class: "fill" })
  readonly #remark = el("span", { class: "remark" })
  readonly #text = el("span", { class: "left" })
  readonly element = el(
    "span",
    { class: "lease" },
    el("span", { class: "track" }, this.#fill),
    this.#remark,
    this.#text
  )

  /** `left` is `null` where there is no expiry; both are milliseconds. Nobody renews a lock that is kept. */
  show(left: number | null, lease: number, isKept: boolean): void {
    setText(this.#remark, isEnding(left, lease) && !isKept ? "not renewed" : "")
    const part = left === null ? 1 : lease === 0 ? 0 : Math.max(0, Math.min(1, left / lease))
    this.#fill.style.transform = `scaleX(${part.toFixed(3)})`
    const level = left === null ? "none" : isKept || part >= endingPart ? "full" : part < 0.15 ? "low" : "middle"
    if (this.element.dataset["level"] !== level) this.element.dataset["level"] = level
    setText(this.#text, left === null ? "no expiry" : span(Math.max(0, left)))
  }
}

/** What is not an ordinary lock is marked: `fair`, `write`, `3 readers`, `kept`. Empty for others. */
export const kindText = (
  kind: string,
  first: { readonly owner: string; readonly mode: string } | undefined,
  holderCount: number
): string => {
  if (first === undefined) return kind === "permit semaphore" ? "semaphore" : ""
  if (isKept(first.owner)) return "kept"
  if (first.mode === "read") return holderCount === 1 ? "read" : `${holderCount} readers`
  if (first.mode === "write") return "write"
  return kind === "fair lock" ? "fair" : ""
}
