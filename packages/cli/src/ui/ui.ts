/**
 * `redis-lock ui`: the held locks as a page for a browser.
 */
import { RedisUrl } from "@effect-redis-lock/ioredis"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { formatAddress } from "effect/http/HttpServer"
import * as Queue from "effect/Queue"
import type * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import { createServer } from "node:http"
import { ExitCode, ExitWith, failed } from "../exit.ts"
import { locksIn, type Target, type Urls } from "../redis.ts"
import * as CommandGroup from "../run/CommandGroup.ts"
import * as Signals from "../run/Signals.ts"
import { print } from "../text.ts"
import { readAssets } from "./assets.ts"
import { LockFeed } from "./feed/LockFeed.ts"
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
export const ui = (options: UiOptions): Effect.Effect<void, ExitWith> =>
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
        interval
      })
    )
    yield* print(`redis-lock ui: ${formatAddress(server.address)}/\n`)
    yield* Effect.raceFirst(
      feed.look(options),
      Effect.flatMap(Queue.take(signals), (signal) => new ExitWith({ code: CommandGroup.codeOf(signal), message: "" }))
    )
  }).pipe(
    Effect.scoped,
    Effect.provide(locksIn(options)),
    Effect.catchTags({
      LockStoreError: failed,
      RedisDriverError: failed,
      InvalidLockOptions: failed,
      ServeError: ({ cause }) =>
        Effect.fail(
          new ExitWith({ code: ExitCode.notListening, message: `cannot listen: ${(cause as Error).message}` })
        )
    })
  )

/** Where a URL leads to: never its user, password or query. */
const placeOf = (url: Urls[number]): string => {
  const { address } = Result.getOrThrow(RedisUrl.parse(url))
  const hostAndPort = ({ host, port }: RedisUrl.HostAndPort) => (port === undefined ? host : `${host}:${port}`)
  switch (address._tag) {
    case "Host":
      return hostAndPort(address)
    case "Socket":
      return address.path
    case "Cluster":
      return `cluster at ${address.nodes.map(hostAndPort).join(", ")}`
    case "Sentinel":
      return `${address.name} of the sentinels at ${address.sentinels.map(hostAndPort).join(", ")}`
  }
}
