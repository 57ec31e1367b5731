/**
 * The page of `redis-lock ui`: what it shows, by its address, and what keys do.
 */
import { visible } from "../../visible.ts"
import { askToFree, closeDialogs, isDialogOpen, showKeys, tokenForm } from "./dialogs.ts"
import { byId, setText } from "./elements.ts"
import { type ConnectionState, listen } from "./connection/events.ts"
import { ListPage } from "./listPage.ts"
import { LockPage } from "./lockPage.ts"
import { Locks, orders } from "./locks.ts"
import { hasToken, setToken, takeTokenFromAddress } from "./connection/session.ts"
import { hrefOf } from "./table.ts"
import { nextTheme, showTheme } from "./theme.ts"
import type { About } from "./connection/wire.ts"

const locks = new Locks()
let about: About | undefined
let lockPage: LockPage | undefined
let connection: { readonly close: () => void } | undefined

// one drawing a frame, however much happens
let isDrawing = false
const draw = (): void => {
  if (isDrawing) return
  isDrawing = true
  requestAnimationFrame(() => {
    isDrawing = false
    if (lockPage === undefined && listPage.element.isConnected) listPage.draw()
  })
}

const listPage = new ListPage(locks, draw)

const statusTexts: Record<ConnectionState | "trouble", string> = {
  connecting: "connecting",
  live: "live",
  lost: "reconnecting",
  token: "locked",
  trouble: "Redis is away"
}

let state: ConnectionState = "connecting"
let trouble: string | null = null

const showState = (): void => {
  const shown = state === "live" && trouble !== null ? "trouble" : state
  const status = byId("status")
  status.dataset["state"] = shown
  setText(status, statusTexts[shown])
  const text =
    state === "lost"
      ? "redis-lock ui does not answer. This is the last state it sent."
      : state === "live" && trouble !== null
        ? `Redis does not answer: ${visible(trouble)} This is the last known state.`
        : ""
  setText(byId("trouble"), text)
  byId("trouble").hidden = text === ""
  document.body.toggleAttribute("data-stale", text !== "")
}

let toastTimer: ReturnType<typeof setTimeout> | undefined
const tell = (message: string): void => {
  const toast = byId("toast")
  setText(toast, message)
  toast.hidden = false
  clearTimeout(toastTimer)
  toastTimer = setTimeout(() => (toast.hidden = true), 6000)
}

const onState = (next: ConnectionState): void => {
  state = next
  showState()
  if (next === "token") {
    connection?.close()
    lockPage?.close()
    lockPage = undefined
    byId("main").replaceChildren(
      tokenForm(hasToken(), (token) => {
        setToken(token)
        route()
      })
    )
  }
}

const onTrouble = (message: string | null): void => {
  if (message === trouble) return
  trouble = message
  showState()
}

const onAbout = (told: About): void => {
  about = told
  const prefix = told.prefix === "" ? "" : `, prefix ${visible(told.prefix)}`
  const pattern = told.pattern === "*" ? "" : `, ${visible(told.pattern)}`
  setText(byId("place"), `${told.redis}${prefix}${pattern}`)
  setText(byId("rights"), told.mayRelease ? "may free locks" : "read-only")
  byId("rights").hidden = false
}

const connect = (): void => {
  connection?.close()
  connection = listen("api/locks", onState, {
    about: (told) => {
      onAbout(told)
      if (lockPage !== undefined) connection?.close()
    },
    trouble: ({ message }) => onTrouble(message),
    locks: (changed) => {
      locks.change(changed)
      if (lockPage === undefined) document.title = `${locks.size} held · redis-lock`
      draw()
    }
  })
}

const freeSelected = (): void => {
  if (about?.mayRelease !== true) return tell("This page is read-only: start redis-lock ui with --allow-release.")
  if (lockPage !== undefined) {
    const told = lockPage.told()
    if (told !== undefined) askToFree(told.state, tell)
    return
  }
  const selected = listPage.table.selected()
  if (selected === undefined) return
  // the table knows neither all holders nor the permits
  const look = listen(`api/lock?name=${encodeURIComponent(selected.name)}`, () => {}, {
    lock: ({ state }) => {
      look.close()
      askToFree(state, tell)
    },
    refused: () => look.close(),
    trouble: () => look.close()
  })
}

/** The name in an address; undefined in any other, also in one that is no text. */
const nameIn = (hash: string): string | undefined => {
  const name = /^#\/lock\/(.+)$/.exec(hash)?.[1]
  try {
    return name === undefined ? undefined : decodeURIComponent(name)
  } catch {
    return undefined
  }
}

/**
 * Shows what the address says. The page of one lock listens to nothing else once it knows what it is about: browsers have six connections to
 * a server for all their windows.
 */
const route = (): void => {
  const name = nameIn(location.hash)
  closeDialogs()
  lockPage?.close()
  lockPage = name === undefined ? undefined : new LockPage({ name, onFree: freeSelected, onState, onTrouble })
  if (lockPage === undefined || about === undefined) connect()
  else connection?.close()
  if (name !== undefined) document.title = `${visible(name)} · redis-lock`
  byId("main").replaceChildren(lockPage?.element ?? listPage.element)
  if (lockPage === undefined) listPage.table.focus()
  draw()
}

const goBack = (): void => {
  if (lockPage !== undefined) location.hash = "#/"
  else {
    listPage.clearSearch()
    listPage.table.focus()
  }
}

/** The selected lock, else the one and only, else the name that is searched. */
const openSelected = (): void => {
  const { filter } = locks
  const shown = locks.shown()
  const selected = listPage.table.selected()
  const isShown = selected !== undefined && shown.includes(selected)
  const name = isShown ? selected.name : shown.length === 1 || filter === "" ? shown[0]?.name : filter
  if (name !== undefined && (isShown || filter !== "")) location.hash = hrefOf(name)
}

const { table } = listPage
const listKeys: Record<string, () => void> = {
  j: () => table.move(1),
  ArrowDown: () => table.move(1),
  k: () => table.move(-1),
  ArrowUp: () => table.move(-1),
  PageDown: () => table.move(table.page()),
  PageUp: () => table.move(-table.page()),
  g: () => table.move(Number.NEGATIVE_INFINITY),
  Home: () => table.move(Number.NEGATIVE_INFINITY),
  G: () => table.move(Number.POSITIVE_INFINITY),
  End: () => table.move(Number.POSITIVE_INFINITY),
  Enter: openSelected,
  s: () => locks.sortBy(orders[(orders.indexOf(locks.order) + 1) % orders.length]!),
  r: () => locks.sortBy(locks.order),
  "/": () => listPage.search.select()
}

const keys: Record<string, () => void> = { f: freeSelected, t: nextTheme, "?": showKeys, Escape: goBack }

/** Keys that also work while the search is edited. */
const inSearch = new Set(["ArrowDown", "ArrowUp", "PageDown", "PageUp", "Enter", "Escape"])

document.addEventListener("keydown", (event) => {
  const isEditing = event.target instanceof HTMLInputElement
  if (event.ctrlKey || event.metaKey || event.altKey || isDialogOpen() || state === "token") return
  if (isEditing && !inSearch.has(event.key)) return
  // a focused button or link is pressed by Enter
  if (event.key === "Enter" && (event.target instanceof HTMLButtonElement || event.target instanceof HTMLAnchorElement))
    return
  const action = keys[event.key] ?? (lockPage === undefined ? listKeys[event.key] : undefined)
  if (action === undefined) return
  event.preventDefault()
  action()
  draw()
})

byId("theme").addEventListener("click", nextTheme)
byId("help").addEventListener("click", showKeys)
window.addEventListener("hashchange", () => {
  takeTokenFromAddress()
  route()
})
// ages and leases
setInterval(draw, 250)

takeTokenFromAddress()
showTheme()
route()
