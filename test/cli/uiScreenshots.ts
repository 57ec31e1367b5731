/**
 * The pictures of the documentation: `SCREENSHOTS=docs/images pnpm test uiPage` writes them, from locks of the library itself.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { RedisServer } from "@effect-redis-lock/testing"
import { Effect, Layer, type Scope } from "effect"
import { FairLock, Lock, PermitSemaphore, ReadWriteLock, type RedisLock } from "effect-redis-lock"
import { resolve } from "node:path"
import { fileURLToPath } from "node:url"
import { until } from "../kit/eventually.ts"
import { client, holdElsewhere } from "./redisLock.ts"
import { open } from "./uiBrowser.ts"
import { startUi } from "./uiServer.ts"

const root = fileURLToPath(new URL("../../", import.meta.url))

type Work<E> = Effect.Effect<unknown, E, RedisLock.RedisLock | Scope.Scope>

/** A process with a label of its own, which works until the scope closes. */
const worker = <E>(url: string, label: string, work: Work<E>) =>
  Effect.forkScoped(
    Effect.scoped(Effect.andThen(work, Effect.never)).pipe(
      Effect.provide(Layer.fresh(IoRedis.layerRedisLock({ urls: [url], label, warnings: [] })))
    )
  )

const lease = (name: string, leaseTime: string) => Lock.scoped(name, { leaseTime: leaseTime as "1 minute" })

/** A morning of a shop. */
const shop = (url: string) =>
  Effect.gen(function* () {
    const ledger = FairLock.make("ledger:eu")
    yield* worker(url, "billing-7f9c/31/server.js", Effect.andThen(Lock.scoped(ledger), Lock.scoped("invoice:2026-11")))
    const redis = yield* client(url)
    yield* until("the ledger is held", async () => (await redis.exists("ledger:eu")) === 1)
    for (const label of ["billing-2b1d/31/server.js", "payout-5cc8/12/worker.js", "billing-9e40/31/server.js"]) {
      yield* worker(url, label, Lock.scoped(ledger))
      yield* Effect.sleep("150 millis")
    }
    const { readLock } = ReadWriteLock.make("catalogue")
    for (const i of [1, 2, 3]) yield* worker(url, `search-${i}/8/index.js`, Lock.scoped(readLock))
    yield* worker(
      url,
      "cron-1/4711/nightly.js",
      Effect.andThen(Lock.scoped("report:nightly"), Lock.scoped("db:vacuum"))
    )
    yield* worker(url, "stock-a1/19/sync.js", lease("warehouse:berlin", "2 minutes"))
    yield* worker(url, "stock-b4/19/sync.js", Lock.scoped("warehouse:lyon"))
    for (const order of [81_204, 81_207, 81_211, 81_216]) {
      yield* worker(url, `web-${order % 3}/22/server.js`, Lock.scoped(`order:${order}`))
    }
    const partner = PermitSemaphore.make("partner-api", { permits: 5 })
    for (const i of [1, 2, 3]) yield* worker(url, `partner-${i}/40/worker.js`, PermitSemaphore.scoped(partner))
    // jobs that come and go, for the history
    yield* worker(url, "mailer-3/27/worker.js", jobs(140))
    yield* worker(url, "mailer-8/27/worker.js", jobs(260))
  })

const jobs = (millis: number) => {
  let i = 0
  return Effect.forever(
    Effect.suspend(() => Effect.sleep(millis + ((i++ * 977) % 700))).pipe(
      Lock.withLock("mail:digest"),
      Effect.andThen(Effect.sleep("150 millis"))
    )
  )
}

/** Takes them all, in three minutes. */
export const takeScreenshots = (folder: string) =>
  Effect.gen(function* () {
    const server = yield* RedisServer.start()
    const ui = yield* startUi(["--allow-release"], { env: { REDIS_URL: server.url } })
    yield* Effect.sleep("1 second")
    yield* shop(server.url)
    const redis = yield* client(server.url)
    for (const colorScheme of ["light", "dark"] as const) {
      // a lease of a minute, of which not much is left
      yield* Effect.promise(() => redis.del("db:migrate"))
      yield* holdElsewhere(redis, "db:migrate")
      yield* Effect.sleep("44 seconds")
      const wide = yield* open(ui, "/", {
        colorScheme,
        deviceScaleFactor: 1.5,
        viewport: { width: 1200, height: 780 }
      })
      const narrow = yield* open(ui, "/", {
        colorScheme,
        deviceScaleFactor: 1.5,
        viewport: { width: 400, height: 780 }
      })
      const take = (opened: typeof wide, name: string, path: string, key?: string) =>
        Effect.promise(async () => {
          await opened.page.goto(`${ui.origin}${path}`)
          await opened.page.locator(".space .row, .people li").first().waitFor()
          if (key !== undefined) await opened.page.keyboard.press(key)
          await opened.page.waitForTimeout(1200)
          await opened.page.screenshot({ path: resolve(root, folder, `ui-${name}-${colorScheme}.png`) })
        })
      yield* take(wide, "locks", "/#/", "j")
      yield* take(wide, "lock", `/#/lock/${encodeURIComponent("ledger:eu")}`)
      yield* take(wide, "history", `/#/lock/${encodeURIComponent("mail:digest")}`)
      yield* take(narrow, "narrow", "/#/")
    }
  }).pipe(Effect.scoped)
