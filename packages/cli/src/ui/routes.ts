/**
 * What the server answers.
 */
import * as Effect from "effect/Effect"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Stream from "effect/Stream"
import type { RedisLock } from "effect-redis-lock"
import { answer, notServed } from "./answer.ts"
import type { Asset } from "./assets.ts"
import { type Event, eventsResponse } from "./events.ts"
import { type Access, type Refusal, refuseReader, refuseStranger } from "./guard.ts"
import type { LockFeed } from "./feed/LockFeed.ts"
import { type NameLooks, newsOf } from "./feed/nameLooks.ts"
import type { About } from "./page/connection/wire.ts"
import { release } from "./release.ts"

export interface Site {
  readonly access: Access
  readonly assets: ReadonlyMap<string, Asset>
  readonly about: About
  readonly feed: LockFeed
  readonly names: NameLooks
  /** Whether a name is one of those that the page was started for: of others it tells nothing, and frees none. */
  readonly serves: (name: string) => boolean
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
      return Effect.succeed(eventsResponse(lock(site, searchParams.get("name") ?? "")))
    case "POST /api/release":
      return site.about.mayRelease
        ? release(request, site.serves)
        : Effect.succeed(answer(403, "this page is read-only: start redis-lock ui with --allow-release"))
    default:
      return Effect.succeed(answer(404, "there is nothing here"))
  }
}

const lock = ({ names, serves }: Site, name: string): Stream.Stream<Event> =>
  serves(name) ? newsOf(names, name) : Stream.succeed<Event>({ event: "refused", data: { message: notServed(name) } })

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
