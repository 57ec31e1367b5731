/**
 * Modules of the package that are not public. They are resolved from the package, so that they are found both from here and from
 * `dist/`, and are the same modules that the package itself has loaded.
 */
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { pathToFileURL } from "node:url"

const internal = join(dirname(createRequire(import.meta.url).resolve("effect-redis-lock")), "internal")

/** The module at this path within `internal/`, with the type that it has there. */
export const loadInternal = async <Module>(path: string): Promise<Module> =>
  (await import(pathToFileURL(join(internal, path)).href)) as Module
