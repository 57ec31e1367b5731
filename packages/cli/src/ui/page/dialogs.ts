/**
 * What is asked and explained above the page.
 */
import { isKept, visible } from "../../visible.ts"
import { button, el } from "./elements.ts"
import { request } from "./connection/session.ts"
import { nameOf } from "./shownHolder.ts"
import type { Answer, Holder, Inspected, ReleaseRequest } from "./connection/wire.ts"

/** Shows a dialog until it is closed. Escape closes it as well. */
const show = (dialog: HTMLDialogElement): void => {
  document.body.append(dialog)
  dialog.addEventListener("close", () => dialog.remove())
  dialog.showModal()
}

/** A question about a page that is left is no longer asked. */
export const closeDialogs = (): void => {
  for (const dialog of document.querySelectorAll("dialog")) dialog.close()
}

/** Whether keys belong to a dialog. */
export const isDialogOpen = (): boolean => document.querySelector("dialog[open]") !== null

/** Asks whether to free a lock, or the held permits of a semaphore that the look has listed, and does it. */
export const askToFree = ({ held, holders, name, permits }: Inspected, tell: (message: string) => void): void => {
  const dialog = el("dialog", { class: "ask", "aria-labelledby": "question" })
  const free = button("Free it", { class: "danger" }, () => {
    dialog.close()
    void sendRelease({ name, seen: [...holders.map(({ owner }) => owner), ...permits.map(({ id }) => id)] }).then(tell)
  })
  dialog.append(
    el("h2", { id: "question" }, "Free ", el("span", { class: "mono" }, visible(name)), "?"),
    el("p", {}, ...(permits.length > 0 ? [permitsThatAreFreed(permits.length, held), consequences] : heldBy(holders))),
    el(
      "div",
      { class: "buttons" },
      button("Leave it", { autofocus: "" }, () => dialog.close()),
      free
    )
  )
  show(dialog)
}

const permitsThatAreFreed = (listed: number, held: number): string =>
  held > listed
    ? `Of the ${held} permits that are held, the ${listed} whose leases end first are given back. `
    : listed === 1
      ? "The permit that is held is given back. "
      : `The ${listed} permits that are held are given back. `

const consequences =
  "The holder is not stopped, but notified. If it cannot be, it learns of its loss when it next renews, at most a third of its lease later: until then two may work at once. If you can, stop the holder instead."

const heldBy = ([first, ...others]: ReadonlyArray<Holder>): ReadonlyArray<Node | string> => {
  if (first === undefined) return []
  const who = nameOf(first)
  if (isKept(first.owner)) return [el("strong", {}, who), " has released it, but its minHold is not over."]
  const more = others.length === 0 ? ". " : ` and ${others.length} more. `
  return ["It is held by ", el("strong", {}, who), more, consequences]
}

const sendRelease = async (body: ReleaseRequest): Promise<string> => {
  try {
    const response = await request("api/release", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body)
    })
    const { message } = (await response.json()) as Answer
    return message
  } catch {
    return "redis-lock ui does not answer"
  }
}

const keys: ReadonlyArray<readonly [string, string]> = [
  ["/", "search names and holders"],
  ["j k ↓ ↑", "select a lock"],
  ["g G", "the first, the last"],
  ["Enter", "open its page, or the name that is searched"],
  ["Esc", "back; clear the search"],
  ["s r", "the next order; reverse it"],
  ["f", "free the lock (with --allow-release)"],
  ["t", "light, dark, as the system"],
  ["?", "this"]
]

export const showKeys = (): void => {
  const dialog = el("dialog", { class: "keys", "aria-label": "Keys" })
  dialog.append(
    el("h2", {}, "Keys"),
    el(
      "dl",
      {},
      ...keys.flatMap(([key, what]) => [
        el("dt", {}, ...key.split(" ").map((one) => el("kbd", {}, one))),
        el("dd", {}, what)
      ])
    ),
    el(
      "div",
      { class: "buttons" },
      button("Close", { autofocus: "" }, () => dialog.close())
    )
  )
  show(dialog)
}

/** A form for the token, which the server asks for. */
export const tokenForm = (isWrong: boolean, onToken: (token: string) => void): HTMLElement => {
  const input = el("input", {
    type: "password",
    id: "token",
    required: "",
    autocomplete: "off",
    "aria-describedby": "token-hint"
  })
  const form = el(
    "form",
    { class: "card token-form" },
    el("h2", {}, isWrong ? "That token is wrong" : "This page needs its token"),
    el("label", { for: "token", id: "token-hint" }, "The text of --token or $REDIS_LOCK_UI_TOKEN"),
    input,
    el("button", { type: "submit", class: "main" }, "Show the locks")
  )
  form.addEventListener("submit", (event) => {
    event.preventDefault()
    onToken(input.value)
  })
  queueMicrotask(() => input.focus())
  return form
}
