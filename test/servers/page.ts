/**
 * The tables of docs/servers.md: one column for each server.
 */
import { features } from "./features.ts"
import { suites } from "./suites.ts"

export interface ServerResult {
  readonly name: string
  /** What each suite came to, by title. */
  readonly outcomes: Readonly<Record<string, string>>
  /** The titles of the features that it has. */
  readonly features: ReadonlyArray<string>
}

/** Where a run writes its tables. */
const mark = (name: string) => ({
  begin: `<!-- ${name}: written by pnpm test:servers -->`,
  end: `<!-- end of ${name} -->`
})

type Columns = ReadonlyMap<string, ReadonlyMap<string, string>>

const between = (page: string, name: string): readonly [before: string, inside: string, after: string] => {
  const { begin, end } = mark(name)
  const from = page.indexOf(begin)
  const to = page.indexOf(end)
  if (from === -1 || to < from) throw new Error(`docs/servers.md has no place for its ${name}`)
  return [page.slice(0, from + begin.length), page.slice(from + begin.length, to), page.slice(to)]
}

const cellsOf = (line: string): ReadonlyArray<string> =>
  line
    .split("|")
    .slice(1, -1)
    .map((cell) => cell.trim())

/** What the page has: by server and row. */
const read = (table: string): Columns => {
  const [header, , ...rows] = table.trim().split("\n").map(cellsOf)
  return new Map(
    (header ?? []).slice(1).map((server, i) => [server, new Map(rows.map((row) => [row[0]!, row[i + 1]!]))])
  )
}

/** By name, and by number where the names are alike. */
const inOrder = (servers: ReadonlyArray<string>): ReadonlyArray<string> =>
  servers.toSorted((one, other) => one.localeCompare(other, "en", { numeric: true }))

const write = (rows: ReadonlyArray<string>, columns: Columns): string => {
  const servers = inOrder([...columns.keys()])
  const line = (cells: ReadonlyArray<string>) => `| ${cells.join(" | ")} |`
  return [
    line(["", ...servers]),
    line(["---", ...servers.map(() => "---")]),
    ...rows.map((row) => line([row, ...servers.map((server) => columns.get(server)!.get(row) ?? "–")]))
  ].join("\n")
}

const tables = {
  kinds: {
    rows: suites.map(({ title }) => title),
    cell: ({ outcomes }: ServerResult, row: string) => outcomes[row]
  },
  features: {
    rows: features.map(({ title }) => title),
    cell: ({ features }: ServerResult, row: string) => (features.includes(row) ? "yes" : "–")
  }
}

/** The page with the results of a run; servers and suites that were not part of it stay as they are. */
export const writeTables = (page: string, results: ReadonlyArray<ServerResult>): string => {
  let text = page
  for (const [name, { cell, rows }] of Object.entries(tables)) {
    const [before, inside, after] = between(text, name)
    const columns = new Map(read(inside))
    for (const result of results) {
      const before = columns.get(result.name)
      columns.set(result.name, new Map(rows.map((row) => [row, cell(result, row) ?? before?.get(row) ?? "–"])))
    }
    text = `${before}\n${write(rows, columns)}\n${after}`
  }
  return text
}

/** The tables of the page. */
export const readTables = (page: string): ReadonlyArray<string> =>
  Object.keys(tables).map((name) => between(page, name)[1].trim())
