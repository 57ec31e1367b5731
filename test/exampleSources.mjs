// Every example of the documentation: the `ts` blocks of all Markdown files, and those of the docstrings of the packages' public modules.
import { readdirSync, readFileSync } from "node:fs"
import { join, relative } from "node:path"
import { fileURLToPath } from "node:url"

export const root = fileURLToPath(new URL("..", import.meta.url))

const walk = (directory, keep) =>
  readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name)
    // docs/api is written from the docstrings
    if (entry.isDirectory()) return /^(node_modules|dist.*|\..*|internal|api)$/.test(entry.name) ? [] : walk(path, keep)
    return keep(path) ? [path] : []
  })

const paths = walk(root, (path) => path.endsWith(".md") || /packages\/[^/]+\/src\/[^/]+\.ts$/.test(path))

/** The code of each, and the file that it is from. */
export const examples = paths.flatMap((path) => {
  const isDocstring = path.endsWith(".ts")
  const text = readFileSync(path, "utf8").replace(/^ \* ?/gm, isDocstring ? "" : "$&")
  return [...text.matchAll(/^```ts\n([^]*?)^```/gm)].map(([, code]) => ({ source: relative(root, path), code }))
})
