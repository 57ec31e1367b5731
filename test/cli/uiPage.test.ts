/**
 * The page of `redis-lock ui`, in a browser. Without a Chromium these tests are skipped. With `SCREENSHOTS=docs/images` it takes the pictures
 * of the documentation as well.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { RedisServer } from "@effect-redis-lock/testing"
import { assert, layer } from "@effect/vitest"
import axe from "axe-core"
import { Deferred, Effect, Layer } from "effect"
import { FairLock, Lock } from "effect-redis-lock"
import type { Page } from "playwright-core"
import { randomUUID } from "node:crypto"
import { writeSync } from "node:fs"
import { freshName } from "../kit/names.ts"
import { until } from "../kit/eventually.ts"
import { redisUrl } from "../kit/server/redisUrl.ts"
import { client, holdElsewhere } from "./redisLock.ts"
import { chromium, open, TheBrowser } from "./uiBrowser.ts"
import { takeScreenshots } from "./uiScreenshots.ts"
import { startUi, theToken } from "./uiServer.ts"
import { testsOf } from "../kit/test.ts"

/** Also of a run that says nothing of tests that pass. */
const report = (text: string) => void writeSync(1, `${text}\n`)

if (chromium === undefined) {
  report("The tests of the page of redis-lock ui are skipped: there is no Chromium (apt-get install chromium)")
}

const promise = <A>(f: () => Promise<A>) => Effect.promise(f)

layer(TheBrowser.layer, { excludeTestServices: true, timeout: "4 minutes" })("the page of redis-lock ui", (it) => {
  const test = testsOf(it.effect.skipIf(chromium === undefined))

  test("The page shows a lock that is acquired, opens its page and frees it by keys, and asks for nothing elsewhere", function* () {
    const name = freshName("ui")
    const redis = yield* client()
    const ui = yield* startUi(["--allow-release", `${name}*`])
    const { complaints, page, requests } = yield* open(ui)
    yield* promise(() => page.getByText("Nobody holds a lock").waitFor())
    const owner = yield* holdElsewhere(redis, name)
    const acquiredAt = performance.now()
    yield* promise(() => page.getByRole("grid").getByRole("link", { name }).waitFor())
    report(`redis-lock ui: a lock is shown ${Math.round(performance.now() - acquiredAt)} ms after its acquisition`)

    yield* promise(() => page.keyboard.press("j"))
    yield* promise(() => page.keyboard.press("Enter"))
    yield* promise(() => page.getByRole("heading", { name }).waitFor())
    yield* promise(() => page.getByText(owner).first().waitFor())
    yield* promise(() => page.keyboard.press("f"))
    const dialog = page.getByRole("dialog")
    yield* promise(() => dialog.getByText("It is held by").waitFor())
    // what is not confirmed is not freed
    yield* promise(() => page.keyboard.press("Enter"))
    yield* promise(() => dialog.waitFor({ state: "detached" }))
    assert.strictEqual(yield* promise(() => redis.exists(name)), 1)
    yield* promise(() => page.getByRole("button", { name: "Free this lock" }).click())
    yield* promise(() => dialog.getByRole("button", { name: "Free it" }).click())
    yield* promise(() => page.getByText("It is free.").waitFor())
    assert.strictEqual(yield* promise(() => redis.exists(name)), 0)
    // it remembers who has held it
    yield* promise(() => page.getByRole("row", { name: owner.slice(0, 8) }).waitFor())
    yield* promise(() => page.keyboard.press("Escape"))
    yield* promise(() => page.getByText("Nobody holds a lock").waitFor())

    assert.deepStrictEqual(complaints, [])
    assert.deepStrictEqual(
      requests.filter((url) => !url.startsWith(`${ui.origin}/`)),
      []
    )
  })

  test("Names and owners that look like HTML are shown as they are, and run nothing", function* () {
    const begin = freshName("ui")
    const redis = yield* client()
    const hostile = [
      `${begin}:<img src=x onerror=alert(1)>`,
      `${begin}:"><script>alert(2)</script>`,
      `${begin}:javascript:alert(3)//%00\u202e\n`,
      // ends a line for `.` in a regular expression, and JSON leaves it as it is
      `${begin}:a\u2028b`
    ]
    for (const name of hostile) {
      yield* promise(() => redis.hset(name, `${randomUUID()}:<img src=x onerror=alert(4)>`, 1))
      yield* promise(() => redis.pexpire(name, 60_000))
    }
    const ui = yield* startUi(["--allow-release", `${begin}*`])
    const { complaints, page } = yield* open(ui)
    yield* promise(() => page.getByRole("grid").getByText(hostile[0]!).waitFor())
    yield* promise(() => page.getByRole("grid").getByText(hostile[1]!).waitFor())
    yield* promise(() => page.getByRole("grid").getByText(`${begin}:javascript:alert(3)//%00\\u{202e}\\u{a}`).waitFor())
    yield* promise(() => page.getByRole("grid").getByText(`${begin}:a\\u{2028}b`).waitFor())
    yield* promise(() => page.getByText(":<img src=x onerror=alert(4)>").first().waitFor())
    for (const name of hostile) {
      yield* promise(() => page.goto(`${ui.origin}/#/lock/${encodeURIComponent(name)}`))
      yield* promise(() => page.getByRole("button", { name: "Free this lock" }).click())
      yield* promise(() => page.getByRole("dialog").getByText(":<img src=x onerror=alert(4)>").waitFor())
      yield* promise(() => page.keyboard.press("Escape"))
    }
    const elements = yield* promise(() => page.locator("img:not([src='icon.svg']), script:not([src])").count())
    assert.strictEqual(elements, 0)
    assert.deepStrictEqual(complaints, [])
  })

  test("A semaphore is in the table, a permit that dies looks like it from the start, and the key f gives back its permits", function* () {
    const name = freshName("ui")
    const redis = yield* client()
    const ids = [1, 2].map((byte) => Buffer.alloc(16, byte))
    const now = Date.now()
    yield* promise(() =>
      redis
        .multi()
        .set(name, "1")
        .zadd(`{${name}}:timeout`, now + 60_000, ids[0]!)
        .zadd(`{${name}}:timeout`, now + 3_600_000, ids[1]!)
        .exec()
    )
    const ui = yield* startUi(["--allow-release", `${name}*`])
    const { complaints, page } = yield* open(ui)
    const row = page.getByRole("row", { name })
    yield* promise(() => row.getByText("2 permits").waitFor())
    assert.strictEqual(yield* promise(() => row.locator(".lease").getAttribute("data-level")), "low")
    yield* promise(() => page.keyboard.press("j"))
    yield* promise(() => page.keyboard.press("Enter"))
    const items = page.getByRole("listitem")
    yield* promise(() => items.filter({ hasText: ids[0]!.toString("hex") }).waitFor())
    const levels = yield* promise(() =>
      items.locator(".lease").evaluateAll((all) => all.map((one: any) => one.dataset["level"]))
    )
    assert.deepStrictEqual(levels, ["low", "full"])
    yield* promise(() => page.keyboard.press("Escape"))
    yield* promise(() => row.waitFor())
    yield* promise(() => page.keyboard.press("f"))
    yield* promise(() => page.getByText("The 2 permits that are held are given back.").waitFor())
    yield* promise(() => page.getByRole("dialog").getByRole("button", { name: "Free it" }).click())
    yield* promise(() => page.getByText("Nobody holds a lock").waitFor())
    assert.strictEqual(yield* promise(() => redis.get(name)), "3")
    assert.deepStrictEqual(complaints, [])
  })

  test("The page asks before it frees permits how many of those that are held, where they are more than it knows", function* () {
    const name = freshName("ui")
    const redis = yield* client()
    const held = Array.from({ length: 1001 }, (_, i) => [
      Date.now() + 600_000 + i,
      Buffer.from(randomUUID().replaceAll("-", ""), "hex")
    ])
    yield* promise(() =>
      redis
        .multi()
        .set(name, "0")
        .zadd(`{${name}}:timeout`, ...held.flat())
        .exec()
    )
    const ui = yield* startUi(["--allow-release", `${name}*`])
    const { page } = yield* open(ui, `/#/lock/${name}`)
    yield* promise(() => page.getByRole("button", { name: "Free 1000 permits" }).click())
    yield* promise(() =>
      page.getByText("Of the 1001 permits that are held, the 1000 whose leases end first are given back.").waitFor()
    )
    yield* promise(() => page.getByRole("dialog").getByRole("button", { name: "Free it" }).click())
    yield* promise(() => page.getByText(`freed 1000 permits of "${name}"; 1 more was held`).waitFor())
    yield* promise(() => page.getByRole("button", { name: "Free all permits" }).waitFor())
  })

  test("The page shows and frees no name that its pattern does not match, and counts processes that wait for any lock", function* () {
    const name = freshName("ui")
    const redis = yield* client()
    yield* holdElsewhere(redis, name)
    const [one, another] = [randomUUID(), randomUUID()]
    yield* promise(() =>
      redis.rpush(`redisson_lock_queue:{${name}}`, `${one}:1`, `${one}:2`, `${one}:3`, `${another}:1`)
    )
    yield* promise(() => redis.pexpire(`redisson_lock_queue:{${name}}`, 60_000))
    yield* holdElsewhere(redis, `other:${name}`)
    const ui = yield* startUi(["--allow-release", `${name}*`])
    const { complaints, page } = yield* open(ui)
    const row = page.getByRole("row", { name })
    yield* promise(() => row.waitFor())
    assert.strictEqual(yield* promise(() => row.locator(".waiting-count").textContent()), "2")
    yield* promise(() => page.goto(`${ui.origin}/#/lock/${encodeURIComponent(`other:${name}`)}`))
    yield* promise(() => page.getByText("does not match the pattern of this page").waitFor())
    assert.strictEqual(yield* promise(() => page.getByRole("button", { name: "Free this lock" }).count()), 0)
    yield* promise(() => page.keyboard.press("f"))
    assert.strictEqual(yield* promise(() => page.getByRole("dialog").count()), 0)
    assert.deepStrictEqual(complaints, [])
  })

  test("The page says of a name that no lock can have what is wrong with it, and not that Redis is away", function* () {
    const ui = yield* startUi([])
    const { complaints, page } = yield* open(ui, `/#/lock/${"x".repeat(2000)}`)
    yield* promise(() => page.getByText("cannot name a lock").waitFor())
    assert.strictEqual(yield* promise(() => page.locator("#status").textContent()), "live")
    yield* promise(() => page.keyboard.press("Escape"))
    yield* promise(() => page.locator(".number .value").first().waitFor())
    assert.isFalse(yield* promise(() => page.locator("#trouble").isVisible()))
    // an address that is no text
    yield* promise(() => page.goto(`${ui.origin}/#/lock/%zz`))
    yield* promise(() => page.reload())
    yield* promise(() => page.locator(".number .value").first().waitFor())
    assert.deepStrictEqual(complaints, [])
  })

  test("A page in a tab that nobody looks at asks for no locks until somebody does", function* () {
    const name = freshName("ui")
    const redis = yield* client()
    yield* holdElsewhere(redis, name)
    const ui = yield* startUi([name])
    const { page, requests } = yield* open(ui)
    yield* promise(() =>
      page.addInitScript(() =>
        Object.defineProperty((globalThis as any).document, "hidden", {
          get: () => (globalThis as any).isSeen !== true
        })
      )
    )
    const before = requests.length
    const asked = () => requests.slice(before).filter((url) => url.startsWith(`${ui.origin}/api/`))
    yield* promise(() => page.reload())
    assert.deepStrictEqual(asked(), [])
    yield* promise(() =>
      page.evaluate(() => {
        const tab = globalThis as any
        tab.isSeen = true
        tab.document.dispatchEvent(new tab.Event("visibilitychange"))
      })
    )
    yield* promise(() => page.getByRole("grid").getByRole("link", { name }).waitFor())
    assert.deepStrictEqual(asked(), [`${ui.origin}/api/locks`])
  })

  test("Of five thousand locks the page holds only the rows that can be seen, and finds any of them", function* () {
    const begin = freshName("ui")
    const redis = yield* client()
    const pipeline = redis.pipeline()
    for (let i = 0; i < 5000; i++) {
      pipeline.hset(`${begin}:${i}`, `${randomUUID()}:1`, 1).pexpire(`${begin}:${i}`, 600_000 + i)
    }
    yield* promise(() => pipeline.exec())
    const ui = yield* startUi([`${begin}:*`])
    const { page } = yield* open(ui)
    const rows = page.locator(".space .row")
    yield* promise(() => page.locator(".number .value", { hasText: /^5000$/ }).waitFor())
    const frames = page.evaluate(measureFrames)
    yield* promise(() => page.mouse.move(600, 500))
    for (let i = 0; i < 40; i++) yield* promise(() => page.mouse.wheel(0, i % 4 === 3 ? -900 : 2500))
    for (const key of ["s", "s", "r", "s", "G", "g"]) yield* promise(() => page.keyboard.press(key))
    const { longest, longestTask, median } = yield* promise(() => frames)
    report(
      `redis-lock ui: with 5000 locks a frame takes ${median.toFixed(1)} ms (median), ${longest.toFixed(1)} ms at most; ` +
        `the longest script task is ${longestTask === 0 ? "below 50" : longestTask.toFixed(0)} ms`
    )
    const count = yield* promise(() => rows.count())
    assert.isAbove(count, 5)
    assert.isBelow(count, 60)
    yield* promise(() => page.keyboard.press("/"))
    yield* promise(() => page.keyboard.type(`${begin}:4321`))
    yield* promise(() => page.getByText("1 of 5000").waitFor())
    yield* promise(() => page.keyboard.press("Enter"))
    yield* promise(() => page.getByRole("heading", { name: `${begin}:4321` }).waitFor())
    yield* promise(() => redis.unlink(...Array.from({ length: 5000 }, (_, i) => `${begin}:${i}`)))
  })

  test("The page says that Redis is away, and shows what is held once Redis is back", function* () {
    const server = yield* RedisServer.start()
    const before = yield* client(server.url)
    yield* holdElsewhere(before, "before")
    const ui = yield* startUi([], { env: { REDIS_URL: server.url } })
    const { complaints, page } = yield* open(ui)
    yield* promise(() => page.getByRole("grid").getByRole("link", { name: "before" }).waitFor())
    yield* server.kill
    yield* promise(() => page.getByRole("alert").getByText("Redis does not answer").waitFor())
    yield* server.restart
    yield* promise(() => page.getByRole("alert").waitFor({ state: "hidden" }))
    yield* promise(() => page.getByRole("grid").getByRole("link", { name: "before" }).waitFor({ state: "detached" }))
    const after = yield* client(server.url)
    yield* holdElsewhere(after, "after")
    yield* promise(() => page.getByRole("grid").getByRole("link", { name: "after" }).waitFor())
    assert.deepStrictEqual(complaints, [])
  })

  test("A token that is wrong, in the address or typed, makes the page say so and ask again", function* () {
    const name = freshName("ui")
    const redis = yield* client()
    yield* holdElsewhere(redis, name)
    const ui = yield* startUi([name], { env: { REDIS_LOCK_UI_TOKEN: theToken } })
    // the second is no text that a header can carry, and the third none at all
    for (const given of ["0123456789abcdef-former", encodeURIComponent("\u{1f512}"), "%zz"]) {
      const { page } = yield* open(ui, `/#token=${given}`)
      yield* promise(() => page.getByText("That token is wrong").waitFor())
      assert.strictEqual(page.url(), `${ui.origin}/#/`)
      const field = page.getByLabel("The text of --token")
      yield* promise(() => field.fill("\u{1f512}"))
      yield* promise(() => page.keyboard.press("Enter"))
      yield* promise(() => page.getByText("That token is wrong").waitFor())
      // copied with what stood around it
      yield* promise(() => field.fill(` ${theToken} `))
      yield* promise(() => page.keyboard.press("Enter"))
      yield* promise(() => page.getByRole("grid").getByRole("link", { name }).waitFor())
    }
  })

  test("A token in an address that is opened in the tab of the page is taken, and leaves the address", function* () {
    const name = freshName("ui")
    const redis = yield* client()
    yield* holdElsewhere(redis, name)
    const ui = yield* startUi([name], { env: { REDIS_LOCK_UI_TOKEN: theToken } })
    const { page } = yield* open(ui)
    yield* promise(() => page.getByText("This page needs its token").waitFor())
    yield* promise(() => page.goto(`${ui.origin}/#token=${theToken}`))
    yield* promise(() => page.getByRole("grid").getByRole("link", { name }).waitFor())
    assert.strictEqual(page.url(), `${ui.origin}/#/`)
    // nor does it stay in the history
    yield* promise(() => page.goBack())
    yield* promise(() => page.goForward())
    assert.strictEqual(page.url(), `${ui.origin}/#/`)
  })

  test("The page asks for the token, keeps it out of the address, and connects again to a redis-lock ui that was restarted", function* () {
    const name = freshName("ui")
    const redis = yield* client()
    yield* holdElsewhere(redis, name)
    const env = { REDIS_LOCK_UI_TOKEN: "0123456789abcdef-token" }
    const ui = yield* startUi([name], { env })
    const { page } = yield* open(ui)
    yield* promise(() => page.getByText("This page needs its token").waitFor())
    yield* promise(() => page.getByLabel("The text of --token").fill("wrong"))
    yield* promise(() => page.keyboard.press("Enter"))
    yield* promise(() => page.getByText("That token is wrong").waitFor())
    yield* promise(() => page.getByLabel("The text of --token").fill(env.REDIS_LOCK_UI_TOKEN))
    yield* promise(() => page.keyboard.press("Enter"))
    yield* promise(() => page.getByRole("grid").getByRole("link", { name }).waitFor())
    const other = yield* open(ui, `/#token=${env.REDIS_LOCK_UI_TOKEN}`)
    yield* promise(() => other.page.getByRole("grid").getByRole("link", { name }).waitFor())
    assert.strictEqual(other.page.url(), `${ui.origin}/#/`)
    assert.deepStrictEqual(yield* promise(() => other.page.context().cookies()), [])

    yield* ui.running.signal("SIGKILL")
    yield* promise(() => page.getByText("redis-lock ui does not answer").waitFor())
    yield* startUi(["--port", String(ui.port), name], { env })
    yield* promise(() => page.getByText("redis-lock ui does not answer").waitFor({ state: "hidden" }))
    yield* until("it is live", () => page.getByRole("status").first().getByText("live").isVisible())
  })

  test("The labels of holders and of waiters are shown beside them, as text alone", function* () {
    const ui = yield* startUi([freshName("ui")])
    const { complaints, page } = yield* open(ui)
    const label = "<b>worker-3</b> on\u2029host-b"
    const shown = "<b>worker-3</b> on\\u{2029}host-b"
    const owner = `${randomUUID()}:1`
    const now = Date.now()
    const holder = { owner, label, mode: "exclusive" }
    const line = {
      kind: "fair lock",
      holderCount: 1,
      since: now,
      isOlder: false,
      leaseEnds: now + 9000,
      lease: 9000,
      longestWait: { since: now - 3000, isOlder: false }
    }
    const held = [{ ...line, name: "ledger", holders: [holder], waiting: 1 }]
    const state = {
      name: "ledger",
      kind: "fair lock",
      token: null,
      holders: [{ ...holder, holds: 1, remainingMillis: 9000 }],
      waiting: 1,
      waiters: [{ owner: `${randomUUID()}:2`, label: "<i>next</i>", mode: null, waitedMillis: 3000 }],
      count: null,
      held: 0,
      permits: []
    }
    // as a server would tell it that knows labels
    const tell = (path: string, event: string, data: unknown) =>
      promise(() =>
        page.route(`**${path}`, (route) =>
          route.fulfill({
            contentType: "text/event-stream",
            body: `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`
          })
        )
      )
    yield* tell("/api/locks", "locks", { now, isWhole: true, held, free: [] })
    yield* tell("/api/lock?*", "lock", {
      now,
      state,
      holds: [{ ...holder, since: now, isOlder: false, until: null }],
      lease: 9000,
      renewedAt: {}
    })
    yield* promise(() => page.reload())
    yield* promise(() => page.getByText(shown).waitFor())
    yield* promise(() => page.keyboard.press("/"))
    yield* promise(() => page.keyboard.type("WORKER-3"))
    yield* promise(() => page.getByText("1 of 1").waitFor())
    yield* promise(() => page.keyboard.press("Enter"))
    yield* promise(() => page.getByRole("heading", { name: "ledger" }).waitFor())
    yield* promise(() => page.getByRole("listitem").getByText("<i>next</i>").waitFor())
    yield* promise(() => page.getByRole("listitem").getByText(shown).waitFor())
    yield* promise(() => page.getByRole("row", { name: shown }).waitFor())
    assert.deepStrictEqual(complaints, [])
  })

  test("The page shows labels of present and past holders and of waiters, a lane for each, and how long each waits", function* () {
    const lock = FairLock.make(freshName("ui"))
    const ui = yield* startUi([lock.name])
    const { complaints, page } = yield* open(ui, `/#/lock/${encodeURIComponent(lock.name)}`)
    const redis = yield* client()
    const holding = yield* Deferred.make<void>()
    const first = Lock.withLock(Deferred.await(holding), lock)
    const last = Lock.withLock(Effect.never, lock)
    yield* Effect.forkScoped(Effect.provide(first, clientCalled("web-1")))
    const items = page.getByRole("listitem")
    yield* promise(() => items.getByText("web-1", { exact: true }).waitFor())
    yield* Effect.forkScoped(Effect.provide(last, clientCalled("web-2")))
    const waiter = items.filter({ hasText: "web-2" })
    yield* promise(() => waiter.getByText(/^for (≥ )?\d/).waitFor())
    const verdict = page.locator(".verdict")
    yield* promise(() => verdict.getByText(/web-1 has held it for/).waitFor())
    yield* promise(() => verdict.getByText(/1 waiter: web-2, for/).waitFor())
    const lanes = page.locator(".lane")
    assert.deepStrictEqual(yield* promise(() => lanes.locator(".lane-name").allTextContents()), ["web-1", "web-2"])
    assert.strictEqual(yield* promise(() => lanes.nth(1).locator(".span-waits").count()), 1)

    yield* Deferred.succeed(holding, undefined)
    yield* promise(() => verdict.getByText(/web-2 has held it for/).waitFor())
    yield* promise(() => page.getByRole("row", { name: "web-1" }).waitFor())
    assert.deepStrictEqual(yield* promise(() => lanes.locator(".lane-name").allTextContents()), ["web-1", "web-2"])
    assert.strictEqual(yield* promise(() => lanes.nth(1).locator(".span-now").count()), 1)
    assert.strictEqual(yield* promise(() => lanes.nth(0).locator(".span-held").count()), 1)
    const text = yield* promise(() => page.locator("main").innerText())
    assert.notMatch(text, /[0-9a-f]{8}-[0-9a-f]{4}-/)
    assert.deepStrictEqual(complaints, [])
    yield* promise(() => redis.del(lock.name))
  })

  test("The page says whether a lease is renewed, runs out, or never ends, and that of a kept lock does not run out", function* () {
    const name = freshName("ui")
    const redis = yield* client()
    yield* holdElsewhere(redis, `${name}:renewed`)
    const late = yield* holdElsewhere(redis, `${name}:late`)
    yield* promise(() => redis.hset(`${name}:endless`, `${randomUUID()}:1`, 1))
    const released = `${randomUUID()}:1:kept`
    yield* promise(() => redis.multi().hset(`${name}:kept`, released, 1).pexpire(`${name}:kept`, 60_000).exec())
    const ui = yield* startUi([`${name}:*`])
    const { page } = yield* open(ui)
    const row = (which: string) => page.getByRole("row", { name: `${name}:${which}` })
    yield* promise(() => row("endless").getByText("no expiry").waitFor())
    yield* promise(() => row("late").waitFor())
    yield* promise(() => row("kept").waitFor())
    yield* promise(() => redis.pexpire(`${name}:renewed`, 90_000))
    yield* promise(() => redis.pexpire(`${name}:kept`, 20_000))
    yield* promise(() => redis.multi().hincrby(`${name}:late`, late, 1).pexpire(`${name}:late`, 20_000).exec())
    yield* promise(() => row("late").getByText("not renewed").waitFor())
    assert.strictEqual(yield* promise(() => page.getByText("not renewed").count()), 1)
    assert.strictEqual(yield* promise(() => row("kept").locator(".lease").getAttribute("data-level")), "full")
    const runningOut = page.locator(".number", { hasText: "leases running out" }).locator(".value")
    assert.strictEqual(yield* promise(() => runningOut.innerText()), "1")
    const verdictOf = (which: string) =>
      Effect.andThen(
        promise(() => page.goto(`${ui.origin}/#/lock/${encodeURIComponent(`${name}:${which}`)}`)),
        promise(() => page.locator(".verdict").innerText())
      )
    assert.match(yield* verdictOf("renewed"), /renews its lease \(last [\d.]+s ago\), so its process is alive/)
    assert.match(yield* verdictOf("late"), /does not renew its lease, which ends in \d+\.\ds/)
    assert.match(yield* verdictOf("endless"), /Its lease never ends/)
  })

  test("Four windows that each show a lock leave the browser a connection to free one, and go back to the list", function* () {
    const name = freshName("ui")
    const redis = yield* client()
    yield* holdElsewhere(redis, name)
    const ui = yield* startUi(["--allow-release", `${name}*`])
    const { complaints, page } = yield* open(ui, `/#/lock/${encodeURIComponent(name)}`)
    for (let i = 1; i < 4; i++) {
      const another = yield* promise(() => page.context().newPage())
      another.setDefaultTimeout(120_000)
      yield* promise(() => another.goto(page.url()))
      yield* promise(() => another.getByRole("button", { name: "Free this lock" }).waitFor())
    }
    assert.strictEqual(yield* promise(() => page.title()), `${name} · redis-lock`)
    yield* promise(() => page.getByRole("button", { name: "Free this lock" }).click())
    yield* promise(() => page.getByRole("dialog").getByRole("button", { name: "Free it" }).click())
    yield* promise(() => page.getByText("It is free.").waitFor())
    yield* holdElsewhere(redis, `${name}:next`)
    yield* promise(() => page.keyboard.press("Escape"))
    yield* promise(() =>
      page
        .getByRole("grid")
        .getByRole("link", { name: `${name}:next` })
        .waitFor()
    )
    yield* until("its title counts the locks", async () => (await page.title()) === "1 held · redis-lock")
    assert.deepStrictEqual(complaints, [])
  })

  test("The bar of a lease is full again when its owner acquires the lock anew with a shorter one", function* () {
    const name = freshName("ui")
    const redis = yield* client()
    const owner = yield* holdElsewhere(redis, name)
    yield* promise(() => redis.pexpire(name, 600_000))
    const ui = yield* startUi([name])
    const { page } = yield* open(ui, `/#/lock/${encodeURIComponent(name)}`)
    const lease = page.getByRole("listitem").locator(".lease")
    yield* promise(() => lease.waitFor())
    assert.strictEqual(yield* promise(() => lease.getAttribute("data-level")), "full")
    yield* promise(() => redis.del(name))
    yield* promise(() => page.getByText("It is free.").waitFor())
    // the look at all locks has seen the end as well
    yield* promise(() => page.getByText("last hold", { exact: true }).waitFor())
    // as a thread of Redisson's does, whose owner is always the same
    yield* promise(() => redis.multi().hset(name, owner, 1).pexpire(name, 60_000).exec())
    yield* promise(() => lease.waitFor())
    assert.strictEqual(yield* promise(() => lease.getAttribute("data-level")), "full")
  })

  for (const width of [1280, 360]) {
    for (const colorScheme of ["light", "dark"] as const) {
      test(`At ${width} pixels, ${colorScheme}, axe finds nothing wrong with the list nor with a lock's page, and nothing is too wide`, function* () {
        const name = freshName("ui")
        const redis = yield* client()
        const ui = yield* startUi([`${name}*`])
        const opened = yield* open(ui, "/", { colorScheme, viewport: { width, height: 740 } })
        const { page } = opened
        yield* holdElsewhere(redis, name)
        yield* promise(() => redis.rpush(`redisson_lock_queue:{${name}}`, `${randomUUID()}:1`))
        yield* promise(() => redis.pexpire(`redisson_lock_queue:{${name}}`, 60_000))
        yield* promise(() => page.getByRole("row", { name }).locator(".waiting[data-some]").waitFor())
        assert.deepStrictEqual(yield* flawsOf(page), [])
        yield* promise(() => page.getByRole("grid").getByRole("link", { name }).click())
        yield* promise(() => page.locator(".lane").nth(1).waitFor())
        assert.deepStrictEqual(yield* flawsOf(page), [])
        const wide = yield* promise(() =>
          page.locator("main").evaluate((main: any) => main.scrollWidth - main.clientWidth)
        )
        assert.isAtMost(wide, 0)
      })
    }
  }

  const folder = process.env["SCREENSHOTS"]
  if (folder !== undefined) it.effect("The pictures of the documentation are taken", () => takeScreenshots(folder))
})

/** A client of its own, which calls itself so. */
const clientCalled = (label: string) => Layer.fresh(IoRedis.layerRedisLock({ urls: [redisUrl], label, warnings: [] }))

const flawsOf = (page: Page) =>
  promise(async () => {
    await page.evaluate(axe.source)
    return page.evaluate(async (): Promise<ReadonlyArray<string>> => {
      const { violations } = await (globalThis as any).axe.run()
      return violations.map(({ id, nodes }: any) => `${id}: ${nodes.map(({ html }: any) => html).join(" ")}`)
    })
  })

/** Runs in the page, for three seconds: milliseconds between frames, and the longest task of 50 ms or more. */
const measureFrames = () =>
  new Promise<{ median: number; longest: number; longestTask: number }>((resolve) => {
    const page = globalThis as any
    const times: Array<number> = []
    let longestTask = 0
    const observer = new page.PerformanceObserver((list: any) => {
      for (const { duration } of list.getEntries()) longestTask = Math.max(longestTask, duration)
    })
    observer.observe({ entryTypes: ["longtask"] })
    const start = performance.now()
    let last = start
    const frame = (now: number) => {
      times.push(now - last)
      last = now
      if (now - start < 3000) return page.requestAnimationFrame(frame)
      observer.disconnect()
      const sorted = times.slice(1).sort((a, b) => a - b)
      resolve({ median: sorted[Math.floor(sorted.length / 2)]!, longest: sorted.at(-1)!, longestTask })
    }
    page.requestAnimationFrame(frame)
  })
