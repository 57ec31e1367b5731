/**
 * Tables in the pages of the documentation that a program writes: between two marks, one column for each thing that was tried.
 */
/** Cells by column and row. */
export type Columns = ReadonlyMap<string, ReadonlyMap<string, string>>

export interface PageTable {
  /** Of the marks. */
  readonly name: string
  /** What writes it, as its mark says. */
  readonly command: string
}

const between = (
  page: string,
  { command, name }: PageTable
): readonly [before: string, inside: string, after: string] => {
  const begin = `<!-- ${name}: written by ${command} -->`
  const from = page.indexOf(begin)
  const to = page.indexOf(`<!-- end of ${name} -->`)
  if (from === -1 || to < from) throw new Error(`the page has no place for its ${name}`)
  return [page.slice(0, from + begin.length), page.slice(from + begin.length, to), page.slice(to)]
}

const cellsOf = (line: string): ReadonlyArray<string> =>
  line
    .split("|")
    .slice(1, -1)
    .map((cell) => cell.trim())

/** The table as the page has it. */
export const tableText = (page: string, table: PageTable): string => between(page, table)[1].trim()

/** What the page has; nothing where it has no table yet. */
export const readTable = (page: string, table: PageTable): Columns => {
  const [header, , ...rows] = tableText(page, table).split("\n").map(cellsOf)
  return new Map(
    (header ?? []).slice(1).map((column, i) => [column, new Map(rows.map((row) => [row[0]!, row[i + 1]!]))])
  )
}

/** The page with that table; – where there is no cell. */
export const writeTable = (page: string, table: PageTable, rows: ReadonlyArray<string>, columns: Columns): string => {
  const [before, , after] = between(page, table)
  const line = (cells: ReadonlyArray<string>) => `| ${cells.join(" | ")} |`
  const lines = [
    line(["", ...columns.keys()]),
    line(["---", ...[...columns.keys()].map(() => "---")]),
    ...rows.map((row) => line([row, ...[...columns.values()].map((cells) => cells.get(row) ?? "–")]))
  ]
  return `${before}\n${lines.join("\n")}\n${after}`
}
