// Compiles every example of the documentation: the `ts` blocks of all Markdown files, and those of the docstrings of the
// packages' public modules. Each becomes a module of its own under test/dist-examples.
import { spawnSync } from "node:child_process"
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { basename, dirname, join, relative } from "node:path"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("..", import.meta.url))
const out = join(root, "test/dist-examples")

const walk = (directory, keep) =>
  readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name)
    if (entry.isDirectory()) return /^(node_modules|dist.*|\..*|internal)$/.test(entry.name) ? [] : walk(path, keep)
    return keep(path) ? [path] : []
  })

const sources = walk(root, (path) => path.endsWith(".md") || /packages\/[^/]+\/src\/[^/]+\.ts$/.test(path))

rmSync(out, { recursive: true, force: true })
mkdirSync(out, { recursive: true })
let count = 0
for (const source of sources) {
  const isDocstring = source.endsWith(".ts")
  const text = readFileSync(source, "utf8").replace(/^ \* ?/gm, isDocstring ? "" : "$&")
  for (const [, code] of text.matchAll(/^```ts\n([^]*?)^```/gm)) {
    const name = `${relative(root, dirname(source)).replaceAll("/", "-") || "root"}-${basename(source)}-${++count}.ts`
    // a module of its own, whatever it imports
    writeFileSync(join(out, name), `// from ${relative(root, source)}\n${code}\nexport {}\n`)
  }
}

writeFileSync(
  join(out, "tsconfig.json"),
  JSON.stringify({
    extends: "../../tsconfig.base.json",
    compilerOptions: {
      composite: false,
      incremental: false,
      declaration: false,
      declarationMap: false,
      sourceMap: false,
      noEmit: true,
      noUnusedLocals: false
    },
    include: ["*.ts"]
  })
)
const { status } = spawnSync("tsc", ["-p", out], { stdio: "inherit" })
if (status === 0) console.log(`${count} examples compile`)
process.exit(status ?? 1)
