import { catalog, type Entry } from "./candidates/catalog.ts"
import { systems } from "./compared/catalog.ts"

/** Finds what is measured by its name, among the libraries and the compared systems. */
export const entryOf = (name: string): Entry => {
  const entry = [...catalog, ...systems].find((entry) => entry.name === name)
  if (entry === undefined) throw new Error(`there is no candidate ${name}`)
  return entry
}
