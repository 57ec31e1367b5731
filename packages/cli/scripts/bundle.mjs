// Bundles the built redis-lock with all that it imports into one file, bundle/redis-lock.js, which starts in a third of the
// time: Node.js loads one file in place of several hundred. What only `redis-lock ui` needs is in a file of its own, bundle/ui/ui.js,
// at the depth of dist/ui/ui.js, so that both find the files of the page. It runs when the package is packed, and before `pnpm test`.
import { rmSync } from "node:fs"
import { rolldown } from "rolldown"

rmSync("bundle", { recursive: true, force: true })
const bundle = await rolldown({ input: "dist/bin.js", platform: "node" })
await bundle.write({
  dir: "bundle",
  entryFileNames: "redis-lock.js",
  chunkFileNames: "ui/[name].js",
  format: "esm",
  // Node.js keeps the text in memory, so without comments and indentation; names stay, for the stacks of bug reports
  comments: false,
  minify: { compress: false, mangle: false, codegen: { removeWhitespace: true } }
})
await bundle.close()
