// Checks the links between the Markdown files: that the file is there, and the heading. Links to the web are not followed. And that no
// sequence diagram has a semicolon, at which Mermaid ends a message: neither GitHub nor the site would draw it.
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs"
import { dirname, join, relative } from "node:path"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("..", import.meta.url))

const walk = (directory) =>
  readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name)
    // docs/api is generated; changesets and changelogs of packages speak of other places
    if (entry.isDirectory()) return /^(node_modules|dist.*|\.(?!github).*|api)$/.test(entry.name) ? [] : walk(path)
    return path.endsWith(".md") ? [path] : []
  })

const withoutCode = (text) => text.replaceAll(/^ *(```+)[^]*?^ *\1/gm, "").replaceAll(/`[^`\n]*`/g, "code")

/** As GitHub makes it. */
const anchorsOf = (path) => {
  const seen = new Map()
  const text = readFileSync(path, "utf8").replaceAll(/^ *(```+)[^]*?^ *\1/gm, "")
  return new Set(
    [...text.matchAll(/^#{1,6} +(.+?) *$/gm)].map(([, heading]) => {
      const slug = heading
        .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
        .replaceAll(" ", "-")
      const times = seen.get(slug) ?? 0
      seen.set(slug, times + 1)
      return times === 0 ? slug : `${slug}-${times}`
    })
  )
}

const undrawn = (path, text) =>
  Array.from(text.matchAll(/^```mermaid\nsequenceDiagram\n([^]*?)^```/gm), ([, messages]) => messages.split("\n"))
    .flat()
    .filter((line) => line.includes(";"))
    .map((line) => `${relative(root, path)}: Mermaid cannot draw ${line.trim()}`)

let count = 0
const problems = walk(root).flatMap((path) => {
  const source = readFileSync(path, "utf8")
  const text = withoutCode(source)
  const targets = [
    ...Array.from(text.matchAll(/\]\(([^()\s]+)\)/g), ([, target]) => target),
    // the home page's buttons
    ...Array.from(text.matchAll(/^ +link: (\/\S*)$/gm), ([, target]) => target)
  ]
  const broken = targets.flatMap((target) => {
    if (/^[a-z]+:/.test(target)) return []
    count++
    const [file, anchor] = target.split("#")
    const isPage = file.startsWith("/")
    const to = file === "" ? path : join(isPage ? join(root, "docs") : dirname(path), file)
    const found = isPage ? [`${to}.md`, join(to, "index.md")].find(existsSync) : existsSync(to) ? to : undefined
    const problem =
      found === undefined
        ? "is not there"
        : anchor !== undefined && !statSync(found).isDirectory() && !anchorsOf(found).has(anchor)
          ? "has no such heading"
          : undefined
    return problem === undefined ? [] : [`${relative(root, path)}: ${target} ${problem}`]
  })
  return [...broken, ...undrawn(path, source)]
})
for (const problem of problems) console.error(problem)
if (problems.length > 0) process.exit(1)
console.log(`${count} links lead somewhere`)
