import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { accessSync, constants, statSync } from "node:fs"
import { delimiter, resolve } from "node:path"

const isExecutable = (path: string): boolean => {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}

/** The absolute path of the first of these programs that exists. Names are looked up on the PATH, paths are not. */
export const findExecutable = (names: ReadonlyArray<string>): Effect.Effect<Option.Option<string>> =>
  Effect.sync(() => {
    const directories = (process.env.PATH ?? "").split(delimiter).filter((directory) => directory !== "")
    for (const name of names) {
      const candidates = name.includes("/") ? [resolve(name)] : directories.map((directory) => resolve(directory, name))
      const found = candidates.find(isExecutable)
      if (found !== undefined) return Option.some(found)
    }
    return Option.none()
  })
