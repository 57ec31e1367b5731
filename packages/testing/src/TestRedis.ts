/**
 * Finds a Redis for a test, a demo or a benchmark. It uses the first of these that exists:
 *
 * 1. `REDIS_URL`, an environment variable. The server is used as it is and never stopped.
 * 2. `redis-server` or `valkey-server` on the PATH: a new process, stopped at the end.
 * 3. A container run with Testcontainers, if the package `testcontainers` is installed and a Docker engine answers: removed
 *    at the end.
 */
import * as Console from "effect/Console"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { aptFetch, canAptFetch, fetchedServer } from "./internal/aptFetch.ts"
import { ping } from "./internal/ping.ts"
import { withRealClock } from "./internal/realClock.ts"
import { startRedisContainer } from "./internal/redisContainer.ts"
import * as RedisServer from "./RedisServer.ts"
import { existsSync } from "node:fs"
import { delimiter } from "node:path"

/**
 * The Redis that was found.
 *
 * - `url`: its address, for any client
 * - `source`: which of the three ways it was found
 * - `description`: the same for a human reader, e.g. `own redis-server 7.0.15 on 127.0.0.1:43117 (stopped at the end)`
 *
 * **Example**
 *
 * ```ts
 * import { TestRedis } from "@effect-redis-lock/testing"
 * import { Effect } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const redis = yield* TestRedis.TestRedis
 *   console.log(redis.url, redis.source)
 * })
 *
 * await Effect.runPromise(Effect.provide(program, TestRedis.layer))
 * ```
 */
export class TestRedis extends Context.Service<
  TestRedis,
  {
    readonly url: string
    readonly source: "REDIS_URL" | "local server" | "container"
    readonly description: string
  }
>()("@effect-redis-lock/testing/TestRedis") {}

/** How to search. All fields are optional. */
export interface Options {
  /** Whether to print nothing. Default: false, one line on the console says which Redis is used. */
  readonly quiet?: boolean | undefined
  /** The container's image, of Redis or Valkey. Default: `REDIS_IMAGE`, an environment variable, else `redis:7.2-alpine`. */
  readonly image?: string | undefined
}

/** How to search with {@link layerWith}. */
export interface LayerOptions extends Options {
  /** Whether to download redis-server if nothing is found, see {@link layerOrInstall}. Default: false. */
  readonly install?: boolean | undefined
}

/** No Redis was found, or the one that `REDIS_URL` names does not answer. The message says what was tried and what to do. */
export class NoRedisFound extends Schema.TaggedError<NoRedisFound>("@effect-redis-lock/testing/NoRedisFound")(
  "NoRedisFound",
  { message: Schema.String }
) {}

type Service = TestRedis["Service"]

const DEFAULT_IMAGE = "redis:7.2-alpine"
const URL_TIMEOUT_MILLIS = 5000
const CONTAINER_PING_TIMEOUT_MILLIS = 1000
const CONTAINER_TIMEOUT_MILLIS = 30_000

/** Many CI systems set an absent variable to the empty string. */
const variable = (name: string): string | undefined => process.env[name] || undefined

/** Without user name and password: this is printed. */
const address = (url: URL): string => `${url.hostname}:${url.port === "" ? "6379" : url.port}`

const fromUrl = Effect.fnUntraced(function* (text: string): Effect.fn.Return<Service, NoRedisFound> {
  const parsed = URL.canParse(text) ? new URL(text) : undefined
  if (parsed === undefined || !/^rediss?:$/.test(parsed.protocol) || parsed.hostname === "") {
    const message =
      "REDIS_URL is not a URL like redis://127.0.0.1:6379 or rediss://user:password@host:6380/0. Correct it, or unset it to search for another Redis."
    return yield* new NoRedisFound({ message })
  }
  const where = address(parsed)
  const info = yield* Effect.mapError(ping(text, URL_TIMEOUT_MILLIS), ({ detail }) => {
    const message = `REDIS_URL names a server on ${where}, but it does not answer PING: ${detail}. Start it, correct REDIS_URL, or unset it to search for another Redis.`
    return new NoRedisFound({ message })
  })
  const name = [info.name, info.version].filter((part) => part !== undefined).join(" ")
  return { url: text, source: "REDIS_URL", description: `REDIS_URL, ${name} on ${where} (left as it is)` }
})

const fromLocalServer: Effect.Effect<Service, RedisServer.RedisServerError, Scope.Scope> = Effect.map(
  RedisServer.start(),
  (server) => ({
    url: server.url,
    source: "local server",
    description: `own ${server.name} on ${server.host}:${server.port} (stopped at the end)`
  })
)

const fromContainer = Effect.fnUntraced(function* (
  options: Options | undefined
): Effect.fn.Return<Service, string, Scope.Scope> {
  const image = options?.image ?? variable("REDIS_IMAGE") ?? DEFAULT_IMAGE
  const { ended, url } = yield* startRedisContainer(image)
  const answers = ping(url, CONTAINER_PING_TIMEOUT_MILLIS).pipe(
    Effect.retry({ schedule: Schedule.spaced(50).pipe(Schedule.upTo({ duration: CONTAINER_TIMEOUT_MILLIS })) }),
    Effect.mapError(({ detail }) => `the container of ${image} does not answer PING: ${detail}`)
  )
  const info = yield* withRealClock(Effect.raceFirst(answers, ended))
  const where = address(new URL(url))
  const version = info.version === undefined ? "" : `, ${info.name} ${info.version}`
  return { url, source: "container", description: `container of ${image}${version} on ${where} (removed at the end)` }
})

const announce = (options: Options | undefined) => (redis: Service) =>
  options?.quiet === true ? Effect.void : Console.log(`Redis: ${redis.description}`)

/** Why there is neither a local server nor a container. */
class NothingFound extends Data.TaggedError("NothingFound")<{
  readonly localServer: string
  readonly container: string
}> {}

const noRedisFound = ({ container, localServer }: NothingFound, installation?: string) =>
  new NoRedisFound({
    message: [
      "No Redis was found. Any one of these will do:",
      "  - set REDIS_URL to a running server, e.g. redis://127.0.0.1:6379 (it is not set)",
      `  - put redis-server or valkey-server on the PATH, e.g. "apt-get install redis-server" or "brew install redis" (${localServer})`,
      `  - start Docker and install testcontainers, which can then run ${DEFAULT_IMAGE}, or the image named by REDIS_IMAGE (${container})`,
      ...(installation === undefined ? [] : [`Downloading redis-server was tried and failed: ${installation}`])
    ].join("\n")
  })

/** The search itself, which announces nothing. */
const search = Effect.fnUntraced(function* (
  options: Options | undefined
): Effect.fn.Return<Service, NoRedisFound | NothingFound, Scope.Scope> {
  const url = variable("REDIS_URL")
  if (url !== undefined) return yield* fromUrl(url)
  return yield* Effect.catch(fromLocalServer, (error) =>
    Effect.mapError(fromContainer(options), (container) => {
      const localServer = error.reason === "NotFound" ? "neither was found" : error.message
      return new NothingFound({ localServer, container })
    })
  )
})

/**
 * {@link find} with options.
 *
 * **Example**
 *
 * ```ts
 * import { TestRedis } from "@effect-redis-lock/testing"
 * import { Effect, Option } from "effect"
 *
 * const program = Effect.scoped(Effect.gen(function*() {
 *   const redis = yield* TestRedis.findWith({ quiet: true, image: "valkey/valkey:8-alpine" })
 *   console.log(Option.isSome(redis) ? redis.value.description : "none")
 * }))
 *
 * await Effect.runPromise(program)
 * ```
 */
export const findWith = (options: Options): Effect.Effect<Option.Option<Service>, NoRedisFound, Scope.Scope> =>
  search(options).pipe(
    Effect.tap(announce(options)),
    Effect.asSome,
    Effect.catchTag("NothingFound", () => Effect.succeedNone)
  )

/**
 * Searches for a Redis, without installing anything, and prints one line saying which one is used. A server or container
 * that it starts is stopped when the scope closes.
 *
 * Finding none is not a failure here. It does fail if `REDIS_URL` is set and does not answer: falling back to another Redis
 * would hide the mistake.
 *
 * **Example**
 *
 * ```ts
 * import { TestRedis } from "@effect-redis-lock/testing"
 * import { Effect, Option } from "effect"
 *
 * const program = Effect.scoped(Effect.gen(function*() {
 *   const redis = yield* TestRedis.find
 *   console.log(Option.isSome(redis) ? redis.value.url : "no Redis here: in memory, then")
 * }))
 *
 * await Effect.runPromise(program)
 * ```
 */
export const find: Effect.Effect<Option.Option<Service>, NoRedisFound, Scope.Scope> = findWith({})

/**
 * Runs a container with Testcontainers, even if another Redis could be found. It is removed when the scope closes, and also
 * when our process dies, with or without Ryuk. Fails with {@link NoRedisFound} if the package `testcontainers` is not
 * installed, Docker does not answer, or the image cannot be pulled.
 *
 * **Example**
 *
 * ```ts
 * import { TestRedis } from "@effect-redis-lock/testing"
 * import { Effect } from "effect"
 *
 * const program = Effect.scoped(Effect.gen(function*() {
 *   const redis = yield* TestRedis.container({ image: "redis:8-alpine" })
 *   console.log(redis.url)
 * }))
 *
 * await Effect.runPromise(program)
 * ```
 */
export const container = (options?: Options): Effect.Effect<Service, NoRedisFound, Scope.Scope> =>
  fromContainer(options).pipe(
    Effect.mapError((reason) => new NoRedisFound({ message: `No Redis in a container: ${reason}` })),
    Effect.tap(announce(options))
  )

const install = Effect.fnUntraced(function* (
  reasons: NothingFound
): Effect.fn.Return<Service, NoRedisFound, Scope.Scope> {
  if (!(yield* canAptFetch)) return yield* noRedisFound(reasons)
  const failed = (reason: string) => noRedisFound(reasons, reason)
  // printed even when quiet: this leaves something on the machine
  if (!existsSync(fetchedServer())) {
    yield* Console.log(`Redis: none was found, so Debian's redis-server is downloaded to ${fetchedServer()}`)
  }
  const directory = yield* Effect.mapError(aptFetch, failed)
  process.env.PATH = `${directory}${delimiter}${process.env.PATH ?? ""}`
  return yield* Effect.mapError(fromLocalServer, (error) => failed(error.message))
})

/**
 * {@link layer} with options.
 *
 * **Example**
 *
 * ```ts
 * import { TestRedis } from "@effect-redis-lock/testing"
 *
 * // as constants: a layer is shared by reference
 * export const quietly = TestRedis.layerWith({ quiet: true })
 * export const valkey = TestRedis.layerWith({ image: "valkey/valkey:8-alpine" })
 * ```
 */
export const layerWith = (options: LayerOptions): Layer.Layer<TestRedis, NoRedisFound> =>
  Layer.effect(
    TestRedis,
    search(options).pipe(
      Effect.catchTag("NothingFound", (reasons) =>
        options.install === true ? install(reasons) : Effect.fail(noRedisFound(reasons))
      ),
      Effect.tap(announce(options))
    )
  )

/**
 * The Redis that the search finds, for the life of the layer. Prints one line saying which one is used; fails with
 * {@link NoRedisFound}, whose message names the three ways, if there is none.
 *
 * **Example**
 *
 * ```ts
 * import { TestRedis } from "@effect-redis-lock/testing"
 * import { assert, layer } from "@effect/vitest"
 * import { Effect } from "effect"
 *
 * layer(TestRedis.layer, { excludeTestServices: true, timeout: "1 minute" })("orders", (it) => {
 *   it.effect("are counted once", () => Effect.gen(function*() {
 *     const { url } = yield* TestRedis.TestRedis
 *     assert.match(url, /^redis/)
 *   }))
 * })
 * ```
 */
export const layer: Layer.Layer<TestRedis, NoRedisFound> = layerWith({})

/**
 * Like {@link layer}, but if nothing is found on Debian (or Ubuntu), it downloads the package of redis-server with `apt-get`, says so
 * beforehand, and uses that. It needs no root: nothing is installed, and the server lies in `~/.cache/effect-redis-lock` (or below
 * `XDG_CACHE_HOME`), where the next run finds it. Its programs are put on the `PATH` of this process, so that {@link RedisServer.start} finds
 * them too. Elsewhere it fails with {@link NoRedisFound}.
 *
 * **Example**
 *
 * ```ts
 * import { TestRedis } from "@effect-redis-lock/testing"
 * import { Effect } from "effect"
 *
 * const program = Effect.map(TestRedis.TestRedis, (redis) => redis.url)
 *
 * await Effect.runPromise(Effect.provide(program, TestRedis.layerOrInstall))
 * ```
 */
export const layerOrInstall: Layer.Layer<TestRedis, NoRedisFound> = layerWith({ install: true })
