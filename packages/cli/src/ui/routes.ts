/**
 * What the server answers.
 */
import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Stream from "effect/Stream"
import { Lock, type RedisLock } from "effect-redis-lock"
import { jsonOf } from "../names/nameState.ts"
import { answer } from "./answer.ts"
import type { Asset } from "./assets.ts"
import { type Event, eventsResponse } from "./events.ts"
import { type Access, type Refusal, refuseReader, refuseStranger } from "./guard.ts"
import type { LockFeed } from "./feed/LockFeed.ts"
import type { About, Answer, LockTold, Trouble } from "./page/connection/wire.ts"
import { release } from "./release.ts"

export interface Site {
  readonly access: Access
  readonly assets: ReadonlyMap<string, Asset>
  readonly about: About
  readonly feed: LockFeed
  /** Between two looks at the lock of a page. */
  readonly interval: Duration.Duration
}

type Response = HttpServerResponse.HttpServerResponse

/** The page loads nothing from elsewhere, runs nothing that is written into it, and nobody may frame it. */
const securityHeaders = {
  "content-security-policy": [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'"
  ].join("; "),
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "cache-control": "no-store"
}

/** The answer to a request: also a refusal has the headers. */
export const respond = (
  site: Site
): Effect.Effect<Response, never, HttpServerRequest.HttpServerRequest | RedisLock.RedisLock> =>
  Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    const refusal = refuseStranger(request, site.access)
    const response = refusal === undefined ? yield* route(request, site) : refused(refusal)
    return HttpServerResponse.setHeaders(response, securityHeaders)
  })

const refused = ({ message, status }: Refusal): Response =>
  status === 401
    ? HttpServerResponse.setHeader(answer(status, message), "www-authenticate", "Bearer")
    : answer(status, message)

const route = (
  request: HttpServerRequest.HttpServerRequest,
  site: Site
): Effect.Effect<Response, never, RedisLock.RedisLock> => {
  const base = "http://localhost"
  if (!URL.canParse(request.url, base)) return Effect.succeed(answer(404, "there is nothing here"))
  const { pathname, searchParams } = new URL(request.url, base)
  const method = request.method === "HEAD" ? "GET" : request.method
  const asset = site.assets.get(pathname)
  if (asset !== undefined) {
    return Effect.succeed(
      method === "GET"
        ? HttpServerResponse.uint8Array(asset.body, { contentType: asset.contentType })
        : answer(405, "this can only be read")
    )
  }
  const refusal = refuseReader(request, site.access)
  if (refusal !== undefined) return Effect.succeed(refused(refusal))
  switch (`${method} ${pathname}`) {
    case "GET /api/locks":
      return Effect.succeed(eventsResponse(locks(site)))
    case "GET /api/lock":
      return Effect.map(Effect.context<RedisLock.RedisLock>(), (context) =>
        eventsResponse(Stream.provideContext(lock(searchParams.get("name") ?? "", site), context))
      )
    case "POST /api/release":
      return site.about.mayRelease
        ? release(request)
        : Effect.succeed(answer(403, "this page is read-only: start redis-lock ui with --allow-release"))
    default:
      return Effect.succeed(answer(404, "there is nothing here"))
  }
}

const locks = ({ about, feed }: Site): Stream.Stream<Event> =>
  Stream.prepend(
    Stream.flatMap(feed.news, ({ locks, trouble }) =>
      Stream.fromArray<Event>([
        ...(locks === undefined ? [] : [{ event: "locks", data: locks } as const]),
        ...(trouble === undefined ? [] : [{ event: "trouble", data: trouble } as const])
      ])
    ),
    [{ event: "about", data: about }]
  )

/** What there is to tell of one name, again and again; other than the table, this also shows semaphores and latches. */
const lock = (name: string, { feed, interval }: Site): Stream.Stream<Event, never, RedisLock.RedisLock> => {
  const look = Lock.inspectName(name).pipe(
    Effect.flatMap((state) =>
      Effect.map(Clock.currentTimeMillis, (now): Event => {
        const data = { now, state: jsonOf(state), holds: feed.history.of(name), lease: feed.leaseOf(name) }
        return { event: "lock", data: data satisfies LockTold }
      })
    ),
    Effect.catchTag("InvalidLockName", ({ message }) =>
      Effect.succeed<Event>({ event: "refused", data: { message } satisfies Answer })
    ),
    Effect.catch(({ message }) => Effect.succeed<Event>({ event: "trouble", data: { message } satisfies Trouble }))
  )
  return Stream.concat(Stream.fromEffect(look), Stream.fromEffectRepeat(Effect.delay(look, interval)))
}
