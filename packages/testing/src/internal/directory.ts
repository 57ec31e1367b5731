import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"

/** A directory that outlives the processes using it, and is removed when the scope closes. */
export const temporaryDirectory = (name: string): Effect.Effect<string, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(() => mkdtemp(join(tmpdir(), `${name}.`))),
    (path) => Effect.promise(() => rm(path, { recursive: true, force: true }))
  )
