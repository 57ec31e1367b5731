/**
 * `redis-lock ui`: the held locks as a page for a browser.
 */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { formatAddress } from "effect/http/HttpServer"
import type * as Redacted from "effect/Redacted"
import { createServer } from "node:http"
import { ExitCode, ExitWith, type Failure } from "../exit.ts"
import { locksIn, placeOf, type Target } from "../redis.ts"
import * as Signals from "../run/Signals.ts"
import { print } from "../text.ts"
import { readAssets } from "./assets.ts"
import { LockFeed } from "./feed/LockFeed.ts"
import { makeNameLooks } from "./feed/nameLooks.ts"
import { matcherOf } from "./glob.ts"
import { respond } from "./routes.ts"

export interface UiOptions extends Target {
  readonly pattern: string
  readonly interval: Duration.Duration
  readonly host: string
  /** 0 takes any free one. */
  readonly port: number
  readonly allowHost: ReadonlyArray<string>
  readonly token: Redacted.Redacted | undefined
  readonly allowRelease: boolean
}

/** Serves the page until a signal arrives. */
export const ui = (options: UiOptions): Effect.Effect<void, ExitWith | Failure> =>
  Effect.gen(function* () {
    const { allowHost, allowRelease, host, interval, pattern, port, prefix, redis, token } = options
    const signals = yield* Signals.listen
    const feed = new LockFeed()
    const server = yield* NodeHttpServer.make(() => createServer(), {
      host,
      port,
      // pages never stop listening
      gracefulShutdownTimeout: "100 millis"
    })
    const startedAt = yield* Clock.currentTimeMillis
    yield* server.serve(
      respond({
        access: { host, otherNames: allowHost, token },
        assets: readAssets(),
        about: { redis: redis.map(placeOf).join(", "), prefix, pattern, mayRelease: allowRelease, startedAt },
        feed,
        names: yield* makeNameLooks({ feed, interval, mayRelease: allowRelease }),
        serves: matcherOf(pattern)
      })
    )
    yield* print(`redis-lock ui: ${formatAddress(server.address)}/\n`)
    yield* Effect.raceFirst(feed.look(options), Signals.exitOn(signals))
  }).pipe(
    Effect.scoped,
    Effect.provide(locksIn(options)),
    Effect.catchTag(
      "ServeError",
      ({ cause }) =>
        new ExitWith({
          code: ExitCode.notListening,
          message: `cannot listen: ${(cause as Error).message}: see --port and --host`
        })
    )
  )
