// Embeds lua/**/*.lua into the core package, and packages/cluster/lua/*.lua into that one, so that users need no files beside the
// code. A line `--@include name` stands for the text of include/name.lua there, or of lua/include/name.lua. A line `--@urgent` marks a
// script that extends a lease which was handed over, `--@tracked` one of whose keys the server tells: see RedisScript.
//   node packages/core/scripts/embed-lua.mjs           writes the generated modules
//   node packages/core/scripts/embed-lua.mjs --check   fails when one is not current
import { createHash } from "node:crypto"
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join, relative, sep } from "node:path"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("../../..", import.meta.url))

/** Where scripts are, what their names begin with, and the module that they become. */
const sets = [
  { sources: "lua", prefix: "", target: "packages/core/src/internal/store/redis/scripts.generated.ts" },
  {
    sources: "packages/cluster/lua",
    prefix: "runner_storage/",
    target: "packages/cluster/src/internal/scripts.generated.ts"
  }
]

const filesOf = (sources) =>
  readdirSync(sources, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".lua"))
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((file) => !file.startsWith(join(sources, "include")))
    .sort()

const includeOf = (name, sources) =>
  [sources, join(root, "lua")].map((folder) => join(folder, "include", `${name}.lua`)).find((file) => existsSync(file))

// comments and blank lines stay in lua/: the server need not parse them
const linesOf = (file, sources) =>
  readFileSync(file, "utf8")
    .split("\n")
    .flatMap((line) => {
      const include = /^--@include ([\w/]+)$/.exec(line.trim())
      if (include !== null) return linesOf(includeOf(include[1], sources), sources)
      return line.trim() === "" || line.trim().startsWith("--") ? [] : [line]
    })

const entryOf = (file, sources, prefix) => {
  const lines = readFileSync(file, "utf8").split("\n")
  const name =
    prefix +
    relative(sources, file)
      .split(sep)
      .join("/")
      .replace(/\.lua$/, "")
  const lua = linesOf(file, sources).join("\n")
  const sha1 = createHash("sha1").update(lua).digest("hex")
  return `  ${JSON.stringify(name)}: {
    name: ${JSON.stringify(name)},
    isUrgent: ${lines.includes("--@urgent")},
    isTracked: ${lines.includes("--@tracked")},
    hasDeadline: ${lines.includes("--@include deadline")},
    sha1: ${JSON.stringify(sha1)},
    lua: ${JSON.stringify(lua)}
  }`
}

for (const { prefix, sources, target } of sets) {
  const files = filesOf(join(root, sources))
  const text = `// Generated from ${sources}/ by packages/core/scripts/embed-lua.mjs. Do not edit.

export const scripts = {
${files.map((file) => entryOf(file, join(root, sources), prefix)).join(",\n")}
} as const
`
  if (!process.argv.includes("--check")) {
    writeFileSync(join(root, target), text)
    console.log(`${files.length} scripts -> ${target}`)
  } else if (readFileSync(join(root, target), "utf8") !== text) {
    console.error(`${target} is not current. Run: pnpm generate`)
    process.exitCode = 1
  }
}
