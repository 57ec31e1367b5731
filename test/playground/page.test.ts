/**
 * The playground of the site's front page, in a browser. Without a Chromium these tests are skipped.
 */
import { assert, layer } from "@effect/vitest"
import axe from "axe-core"
import { Effect } from "effect"
import type { BrowserContextOptions, Page } from "playwright-core"
import { chromium, open, TheBrowser } from "../cli/uiBrowser.ts"
import { servePlayground } from "./playgroundPage.ts"
import { unlockedWorld } from "./unlockedWorld.ts"

const promise = <A>(f: () => Promise<A>) => Effect.promise(f)

/** Nothing moves by itself. */
const still: BrowserContextOptions = { reducedMotion: "reduce" }

const paused = "/?seed=8&faults=3200-pause-A_8200-resume-A"

/** Tenths of a second. */
const step = (page: Page, count: number) =>
  promise(() =>
    page.getByRole("button", { name: "Step" }).evaluate((button: any, count) => {
      for (let i = 0; i < count; i++) button.click()
    }, count)
  )

const openPlayground = (path: string, options: BrowserContextOptions = {}) =>
  Effect.gen(function* () {
    const served = yield* servePlayground
    const opened = yield* open(served, path, options)
    const { page } = opened
    yield* promise(() => page.getByRole("button", { name: "Step" }).waitFor())
    const world = (lock: string) => page.locator(`.world[data-lock="${lock}"]`)
    const clock = Effect.map(
      promise(() => page.getByLabel("virtual time").innerText()),
      Number.parseFloat
    )
    return { ...opened, ...served, world, clock }
  })

layer(TheBrowser.layer, { excludeTestServices: true, timeout: "4 minutes" })("the playground", (it) => {
  it.effect.skipIf(chromium === undefined)(
    "The run of an address plays by itself: SET NX loses deposits, the library interrupts the process before it writes",
    () =>
      Effect.gen(function* () {
        const { complaints, origin, page, requests, world } = yield* openPlayground(paused)
        yield* promise(() => page.getByLabel("Speed").selectOption("16"))
        yield* promise(() => world("library").getByText("A has lost the lock: its section is interrupted").waitFor())
        yield* promise(() => world("set-nx").getByText("A overwrites 4 deposits: it no longer has the lock").waitFor())
        yield* promise(() => page.getByRole("button", { name: "Stop" }).click())
        assert.strictEqual(yield* promise(() => world("library").locator(".lost").first().innerText()), "0")
        assert.notStrictEqual(yield* promise(() => world("set-nx").locator(".score .lost").innerText()), "0")
        assert.deepStrictEqual(complaints, [])
        assert.deepStrictEqual(
          requests.filter((url) => !url.startsWith(origin) && !url.startsWith("data:")),
          []
        )
      }).pipe(Effect.scoped)
  )

  it.effect.skipIf(chromium === undefined)(
    "What is done by keyboard is in the address, which plays the same run again elsewhere",
    () =>
      Effect.gen(function* () {
        const { clock, complaints, page, world } = yield* openPlayground("/?seed=8", still)
        const press = (name: string) =>
          promise(async () => {
            await page.getByRole("button", { name, exact: true }).focus()
            await page.keyboard.press("Enter")
          })
        assert.strictEqual(yield* clock, 0)
        yield* press("Step")
        yield* step(page, 31)
        yield* press("Pause process A")
        yield* step(page, 50)
        yield* press("Resume process A")
        yield* press("Cut off process B from Redis")
        yield* step(page, 8)
        assert.strictEqual(yield* clock, 9)
        const { search } = new URL(page.url())
        assert.strictEqual(search, "?seed=8&faults=3200-pause-A_8200-resume-A_8200-cut-B")
        const shown = (view: typeof world) =>
          promise(() => Promise.all(["set-nx", "library"].map((lock) => view(lock).innerText())))
        const before = yield* shown(world)
        assert.include(before[1], "A has lost the lock")

        yield* press("Replay")
        assert.strictEqual(yield* clock, 0)
        yield* step(page, 90)
        assert.deepStrictEqual(yield* shown(world), before)
        yield* press("Start over")
        assert.strictEqual(new URL(page.url()).search, "?seed=8")
        assert.deepStrictEqual(complaints, [])

        const again = yield* openPlayground(`/${search}`, still)
        yield* step(again.page, 90)
        assert.deepStrictEqual(yield* shown(again.world), before)
      }).pipe(Effect.scoped)
  )

  it.effect.skipIf(chromium === undefined)(
    "The history of a failed world is opened where it failed, with two holders at once, and is played from its beginning",
    () =>
      Effect.gen(function* () {
        const { complaints, page } = yield* openPlayground("/?seed=8", still)
        const history = unlockedWorld()
        const choose = (text: string) =>
          promise(() =>
            page
              .getByLabel("History")
              .setInputFiles({ name: "world.json", mimeType: "application/json", buffer: Buffer.from(text) })
          )
        const player = page.locator("details")
        const holding = promise(() => player.locator(".doing").filter({ hasText: "open" }).count())
        yield* promise(() => player.getByText("Open the history of a failed world").click())
        yield* choose("no history")
        yield* promise(() => player.getByText("world.json is not such a history.").waitFor())

        yield* choose(JSON.stringify(history))
        yield* promise(() => player.getByText("without a lock, seed 1: who entered").waitFor())
        assert.strictEqual(yield* holding, 2)
        assert.isAtLeast(yield* promise(() => player.locator("rect").count()), 2)

        const time = player.getByLabel("Time")
        yield* promise(() => time.fill("0"))
        assert.strictEqual(yield* holding, 0)
        yield* promise(() => player.getByRole("button", { name: "Play" }).click())
        // it stops by itself where the world failed
        yield* promise(() => player.locator(".doing").filter({ hasText: "open" }).nth(1).waitFor())
        yield* promise(() => player.getByRole("button", { name: "Play" }).waitFor())
        assert.strictEqual(Number(yield* promise(() => time.inputValue())), history.end)
        assert.deepStrictEqual(complaints, [])
      }).pipe(Effect.scoped)
  )

  for (const colorScheme of ["light", "dark"] as const) {
    it.effect.skipIf(chromium === undefined)(
      `On a phone nothing is wider than the page, and nothing is hard to read or to reach (${colorScheme})`,
      () =>
        Effect.gen(function* () {
          const { page } = yield* openPlayground(paused, {
            ...still,
            colorScheme,
            viewport: { width: 360, height: 740 }
          })
          yield* promise(() => page.locator("html").evaluate((html, name) => html.classList.add(name), colorScheme))
          yield* step(page, 84)
          const wide = yield* promise(() => page.locator("html").evaluate((html: any) => html.scrollWidth))
          assert.isAtMost(wide, 360)
          yield* promise(() => page.evaluate(axe.source))
          const violations: ReadonlyArray<string> = yield* promise(() =>
            page.evaluate(async () => {
              const { violations } = await (globalThis as any).axe.run()
              return violations.map(({ id, nodes }: any) => `${id}: ${nodes.map(({ html }: any) => html).join(" ")}`)
            })
          )
          assert.deepStrictEqual(violations, [])
        }).pipe(Effect.scoped)
    )
  }
})
