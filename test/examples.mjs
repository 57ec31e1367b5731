// Compiles every example of the documentation. Each becomes a module of its own under test/dist-examples.
import { spawnSync } from "node:child_process"
import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { examples, root } from "./exampleSources.mjs"

const out = join(root, "test/dist-examples")

rmSync(out, { recursive: true, force: true })
mkdirSync(out, { recursive: true })
for (const [index, { code, source }] of examples.entries()) {
  // a module of its own, whatever it imports
  writeFileSync(join(out, `${source.replaceAll("/", "-")}-${index + 1}.ts`), `// from ${source}\n${code}\nexport {}\n`)
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
if (status === 0) console.log(`${examples.length} examples compile`)
process.exit(status ?? 1)
