/**
 * The tables of docs/servers.md: one column for each server.
 */
import { type PageTable, readTable, tableText, writeTable } from "../kit/pageTable.ts"
import { features } from "./features.ts"
import { NOT_TRIED } from "./runTests.ts"
import { suites } from "./suites.ts"

export interface ServerResult {
  readonly name: string
  /** What each suite came to, by title. */
  readonly outcomes: Readonly<Record<string, string>>
  /** The titles of the features that it has. */
  readonly features: ReadonlyArray<string>
}

/** By name, and by number where the names are alike. */
const inOrder = (servers: ReadonlyArray<string>): ReadonlyArray<string> =>
  servers.toSorted((one, other) => one.localeCompare(other, "en", { numeric: true }))

/** When all suites were run on it. */
export const RUN_ON = "run on"

const tables = {
  kinds: {
    rows: [RUN_ON, ...suites.map(({ title }) => title)],
    cell: ({ outcomes }: ServerResult, row: string) => outcomes[row]
  },
  features: {
    rows: features.map(({ title }) => title),
    cell: ({ features }: ServerResult, row: string) => (features.includes(row) ? "yes" : "–")
  }
}

/** Where the page has it. */
const table = (name: string): PageTable => ({ name, command: "pnpm test:servers" })

/** The page with the results of a run; servers and suites that were not part of it stay as they are. */
export const writeTables = (page: string, results: ReadonlyArray<ServerResult>): string => {
  let text = page
  for (const [name, { cell, rows }] of Object.entries(tables)) {
    const columns = new Map(readTable(text, table(name)))
    for (const result of results) {
      const before = columns.get(result.name)
      const cells = rows.map((row) => {
        const now = cell(result, row)
        // an image says nothing of what needs a program
        return [row, (now === NOT_TRIED ? undefined : now) ?? before?.get(row) ?? now ?? "–"] as const
      })
      columns.set(result.name, new Map(cells))
    }
    const ordered = new Map(inOrder([...columns.keys()]).map((server) => [server, columns.get(server)!]))
    text = writeTable(text, table(name), rows, ordered)
  }
  return text
}

/** The tables of the page. */
export const readTables = (page: string): ReadonlyArray<string> =>
  Object.keys(tables).map((name) => tableText(page, table(name)))
