/**
 * Frees a lock for the page, as `redis-lock release --force` does.
 */
import * as ByteSize from "effect/ByteSize"
import * as Effect from "effect/Effect"
import { MaxBodySize } from "effect/http/HttpIncomingMessage"
import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import type { HttpServerResponse } from "effect/http/HttpServerResponse"
import * as Schema from "effect/Schema"
import { Lock, type RedisLock } from "effect-redis-lock"
import { heldBy } from "../names/nameState.ts"
import { free, isHeldByOthers, refusalOf } from "../names/release.ts"
import { say } from "../say.ts"
import { visible } from "../visible.ts"
import { answer } from "./answer.ts"
import type { ReleaseRequest } from "./page/connection/wire.ts"

const decode = Schema.decodeUnknownEffect(Schema.Struct({ name: Schema.String, seen: Schema.Array(Schema.String) }))

/** Frees what the request names, unless others hold it by now than the page showed. */
export const release = (request: HttpServerRequest): Effect.Effect<HttpServerResponse, never, RedisLock.RedisLock> =>
  Effect.gen(function* () {
    // a form of another page cannot send this type
    if (!/^application\/json\b/i.test(request.headers["content-type"] ?? "")) {
      return answer(415, "the body must be application/json")
    }
    const { name, seen }: ReleaseRequest = yield* Effect.flatMap(request.json, decode)
    const state = yield* Lock.inspectName(name)
    const refusal = refusalOf(state)
    if (refusal !== undefined) return answer(409, refusal.message)
    if (isHeldByOthers(state, seen)) {
      return answer(409, `"${visible(name)}" is held by others now: nothing was freed`)
    }
    if ((yield* free(state)) === 0) return answer(409, `nobody holds "${visible(name)}" any more`)
    yield* say(`freed "${visible(name)}" for the page; it was ${heldBy(state)}`)
    return answer(200, `freed "${visible(name)}"`)
  }).pipe(
    Effect.provideService(MaxBodySize, ByteSize.mebibytes(1)),
    Effect.catchTags({
      LockStoreError: ({ message }) => Effect.succeed(answer(502, message)),
      InvalidLockName: ({ message }) => Effect.succeed(answer(400, message)),
      InvalidLockOptions: ({ message }) => Effect.succeed(answer(400, message)),
      HttpServerError: () => Effect.succeed(answer(400, "the body is not JSON, or too large")),
      SchemaError: () => Effect.succeed(answer(400, "the body needs a name and the owners that were seen"))
    })
  )
