import * as Effect from "effect/Effect"
import { InvalidLockOptions } from "effect-redis-lock"
import type { CommandPath } from "./CommandPath.ts"
import { fastPath } from "../fast/fastPath.ts"
import { missingParts } from "../fast/missingParts.ts"
import { plainPath } from "../plain/plainPath.ts"

const VARIABLE = "REDIS_LOCK_FAST_PATH"

/** Not by Config, which would keep the environment as it is when the first layer is built. */
const fromEnvironment = Effect.suspend(() => {
  switch (process.env[VARIABLE]) {
    case undefined:
    case "":
    case "true":
      return Effect.succeed(true)
    case "false":
      return Effect.succeed(false)
    default:
      return Effect.fail(new InvalidLockOptions({ option: VARIABLE, problem: "it must be true or false" }))
  }
})

/** The fast path if it is wanted and this version of ioredis has what it needs, else the plain one; logs which one, and why. */
export const choosePath = (wanted: boolean | undefined): Effect.Effect<CommandPath, InvalidLockOptions> =>
  Effect.gen(function* () {
    const isWanted = wanted ?? (yield* fromEnvironment)
    const missing = isWanted ? yield* Effect.promise(missingParts) : []
    const path = isWanted && missing.length === 0 ? fastPath : plainPath
    const why = !isWanted ? ": it was asked for" : missing.length > 0 ? `: ioredis lacks ${missing.join(", ")}` : ""
    yield* Effect.annotateLogs(Effect.logDebug(`Scripts take the ${path.name} path through ioredis${why}.`), {
      event: "path",
      path: path.name,
      missing: missing.join(", ")
    })
    return path
  })
