/**
 * Frees a lock for the page, as `redis-lock release --force` does.
 */
import * as ByteSize from "effect/ByteSize"
import * as Effect from "effect/Effect"
import { MaxBodySize } from "effect/http/HttpIncomingMessage"
import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import type { HttpServerResponse } from "effect/http/HttpServerResponse"
import * as Schema from "effect/Schema"
import { Lock, type LockState, type RedisLock } from "effect-redis-lock"
import { heldBy } from "../names/nameState.ts"
import { free, refusalOf, whatWasFreed, whyNothingWasFreed } from "../names/release.ts"
import { say } from "../say.ts"
import { answer, notServed } from "./answer.ts"
import type { ReleaseRequest } from "./page/connection/wire.ts"

/** The state with no holders and permits listed but these. */
const onlySeen = (state: LockState, seen: ReadonlySet<string>): LockState => ({
  ...state,
  holders: state.holders.filter(({ owner }) => seen.has(owner)),
  permits: state.permits.filter(({ id }) => seen.has(id))
})

const decode = Schema.decodeUnknownEffect(Schema.Struct({ name: Schema.String, seen: Schema.Array(Schema.String) }))

/** Frees what the request names, if the page was started for it, from those alone that the page showed. */
export const release = (
  request: HttpServerRequest,
  serves: (name: string) => boolean
): Effect.Effect<HttpServerResponse, never, RedisLock.RedisLock> =>
  Effect.gen(function* () {
    // a form of another page cannot send this type
    if (!/^application\/json\b/i.test(request.headers["content-type"] ?? "")) {
      return answer(415, "the body must be application/json")
    }
    const { name, seen }: ReleaseRequest = yield* Effect.flatMap(request.json, decode)
    if (!serves(name)) return answer(403, notServed(name))
    const state = yield* Lock.inspect(name)
    const refusal = refusalOf(state)
    if (refusal !== undefined) return answer(409, refusal.message)
    const shown = onlySeen(state, new Set(seen))
    const count = yield* free(shown)
    if (count === 0) return answer(409, yield* whyNothingWasFreed(name))
    const freed = `freed ${whatWasFreed(shown, count)}`
    yield* say(`for the page: ${freed}${state.held > 0 ? "" : `; it was ${heldBy(state)}`}`)
    return answer(200, freed)
  }).pipe(
    Effect.provideService(MaxBodySize, ByteSize.mebibytes(1)),
    Effect.catchTags({
      LockStoreError: ({ message }) => Effect.succeed(answer(502, message)),
      InvalidLockName: ({ message }) => Effect.succeed(answer(400, message)),
      InvalidLockOptions: ({ message }) => Effect.succeed(answer(400, message)),
      HttpServerError: () => Effect.succeed(answer(400, "the body is not JSON, or too large")),
      SchemaError: () => Effect.succeed(answer(400, "the body needs a name, and the owners or permits that were seen"))
    })
  )
