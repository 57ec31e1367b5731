/**
 * Light, dark, or as the system has it; remembered by the browser.
 */
import { byId } from "./elements.ts"

const stored = "redis-lock theme"
const themes = ["auto", "light", "dark"] as const
const signs: Record<(typeof themes)[number], string> = { auto: "◐", light: "☀", dark: "☾" }

const current = (): (typeof themes)[number] => themes.find((theme) => theme === localStorage.getItem(stored)) ?? "auto"

export const showTheme = (): void => {
  const theme = current()
  document.documentElement.dataset["theme"] = theme
  byId("theme").textContent = signs[theme]
  byId("theme").setAttribute("aria-label", `Theme: ${theme}`)
}

export const nextTheme = (): void => {
  localStorage.setItem(stored, themes[(themes.indexOf(current()) + 1) % themes.length]!)
  showTheme()
}
