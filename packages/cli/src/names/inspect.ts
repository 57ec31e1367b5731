/**
 * `redis-lock inspect`: everything that Redis stores under one name.
 */
import * as Effect from "effect/Effect"
import { Lock } from "effect-redis-lock"
import type { ExitWith, Failure } from "../exit.ts"
import { jsonOf, textOf } from "./nameState.ts"
import { locksIn, type Target } from "../redis.ts"
import { print, printJson } from "../text.ts"

export interface InspectOptions extends Target {
  readonly name: string
  readonly json: boolean
}

export const inspect = ({ json, name, ...target }: InspectOptions): Effect.Effect<void, ExitWith | Failure> =>
  Lock.inspect(name).pipe(
    Effect.provide(locksIn(target)),
    Effect.flatMap((state) => (json ? printJson(jsonOf(state)) : print(textOf(state))))
  )
