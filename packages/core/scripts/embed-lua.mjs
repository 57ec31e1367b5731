// Embeds lua/**/*.lua into the core package, so that users need no files beside the code. A line `--@include name` stands for
// the text of lua/include/name.lua.
//   node packages/core/scripts/embed-lua.mjs           writes the generated module
//   node packages/core/scripts/embed-lua.mjs --check   fails when it is not current
import { createHash } from "node:crypto"
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join, relative, sep } from "node:path"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("../../..", import.meta.url))
const sources = join(root, "lua")
const target = join(root, "packages/core/src/internal/store/redis/scripts.generated.ts")

const files = readdirSync(sources, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && entry.name.endsWith(".lua"))
  .map((entry) => join(entry.parentPath, entry.name))
  .filter((file) => !file.startsWith(join(sources, "include")))
  .sort()

// comments and blank lines stay in lua/: the server need not parse them
const linesOf = (file) =>
  readFileSync(file, "utf8")
    .split("\n")
    .flatMap((line) => {
      const include = /^--@include (\w+)$/.exec(line.trim())
      if (include !== null) return linesOf(join(sources, "include", `${include[1]}.lua`))
      return line.trim() === "" || line.trim().startsWith("--") ? [] : [line]
    })

const entries = files.map((file) => {
  const name = relative(sources, file)
    .split(sep)
    .join("/")
    .replace(/\.lua$/, "")
  const lua = linesOf(file).join("\n")
  const sha1 = createHash("sha1").update(lua).digest("hex")
  return `  ${JSON.stringify(name)}: {
    name: ${JSON.stringify(name)},
    hasDeadline: ${/^--@include deadline$/m.test(readFileSync(file, "utf8"))},
    sha1: ${JSON.stringify(sha1)},
    lua: ${JSON.stringify(lua)}
  }`
})

const text = `// Generated from lua/ by packages/core/scripts/embed-lua.mjs. Do not edit.

export const scripts = {
${entries.join(",\n")}
} as const
`

if (process.argv.includes("--check")) {
  const current = readFileSync(target, "utf8")
  if (current !== text) {
    console.error("The embedded Lua is not current. Run: pnpm generate")
    process.exit(1)
  }
} else {
  writeFileSync(target, text)
  console.log(`${entries.length} scripts -> ${relative(root, target)}`)
}
