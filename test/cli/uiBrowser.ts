/**
 * A headless Chromium, of the system: `apt-get install chromium`, or the path in `CHROMIUM`.
 */
import { Context, Effect, Layer, type Scope } from "effect"
import { existsSync } from "node:fs"
import { type Browser, type BrowserContextOptions, chromium as playwright, type Page } from "playwright-core"
import type { Ui } from "./uiServer.ts"

const usual = [
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
]
const places = process.env["CHROMIUM"] === undefined ? usual : [process.env["CHROMIUM"]]

/** Where it is; undefined where there is none. */
export const chromium: string | undefined = places.find((place) => existsSync(place))

/** One for all tests of a file. */
export class TheBrowser extends Context.Service<TheBrowser, Browser>()("test/cli/TheBrowser") {
  static readonly layer = Layer.effect(
    this,
    Effect.acquireRelease(
      Effect.promise(() => playwright.launch({ executablePath: chromium! })),
      (browser) => Effect.promise(() => browser.close())
    )
  )
}

export interface Opened {
  readonly page: Page
  /** Everything that the page has asked for. */
  readonly requests: ReadonlyArray<string>
  /** What the browser has complained of: errors of scripts, and what the policy has forbidden. */
  readonly complaints: ReadonlyArray<string>
}

/** Opens a page, such as that of a `redis-lock ui`, in a window of its own, until the scope closes. */
export const open = (
  { authorization = {}, origin }: Pick<Ui, "origin"> & Partial<Pick<Ui, "authorization">>,
  path = "/",
  options: BrowserContextOptions = {}
): Effect.Effect<Opened, never, TheBrowser | Scope.Scope> =>
  Effect.gen(function* () {
    const browser = yield* TheBrowser
    const context = yield* Effect.acquireRelease(
      Effect.promise(() => browser.newContext({ viewport: { width: 1280, height: 800 }, ...options })),
      (context) => Effect.promise(() => context.close())
    )
    const token = authorization["authorization"]?.replace("Bearer ", "")
    if (token !== undefined) {
      yield* Effect.promise(() =>
        context.addInitScript((text) => (globalThis as any).sessionStorage.setItem("redis-lock token", text), token)
      )
    }
    const page = yield* Effect.promise(() => context.newPage())
    // a busy machine is slow
    page.setDefaultTimeout(120_000)
    const requests: Array<string> = []
    const complaints: Array<string> = []
    page.on("request", (request) => requests.push(request.url()))
    page.on("pageerror", (error) => complaints.push(String(error)))
    page.on("dialog", (dialog) => {
      complaints.push(`a dialog: ${dialog.message()}`)
      void dialog.dismiss()
    })
    page.on("console", (message) => {
      // that a server does not answer is logged by the browser itself
      if (message.type() === "error" && !message.text().includes("net::ERR")) complaints.push(message.text())
    })
    yield* Effect.promise(() => page.goto(`${origin}${path}`))
    return { page, requests, complaints }
  })
