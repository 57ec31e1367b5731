// Bundles the built redis-lock with all that it imports into one file, bundle/redis-lock.js, which starts in a third of the
// time: Node.js loads one file in place of several hundred. It runs when the package is packed, and before `pnpm test`.
import { rolldown } from "rolldown"

const bundle = await rolldown({ input: "dist/bin.js", platform: "node" })
await bundle.write({
  file: "bundle/redis-lock.js",
  format: "esm",
  // Node.js keeps the text in memory, so without comments and indentation; names stay, for the stacks of bug reports
  comments: false,
  minify: { compress: false, mangle: false, codegen: { removeWhitespace: true } }
})
await bundle.close()
