// Bundles the built redis-lock with all that it imports into a few files: Node.js loads them in a third of the time that several
// hundred take. What only `redis-lock ui` needs is in a file of its own, bundle/ui/ui.js, at the depth of dist/ui/ui.js, so
// that both find the files of the page. It runs when the package is packed, and before `pnpm test`.
//
// A `redis-lock run` lives as long as its command, one for each cron job of a machine, so this also saves memory (its README has
// the figures): each step below is worth a megabyte or more of a process that has 40 before its first line runs.
import { rmSync } from "node:fs"
import { rolldown } from "rolldown"

/** Replaces a line of a dependency; a dependency that no longer has it fails the build. */
const replaceIn = (file, from, to) => ({
  name: `replace in ${file}`,
  transform: {
    filter: { id: new RegExp(`${file.replaceAll(".", "\\.")}$`) },
    handler(code) {
      if (code.split(from).length !== 2) throw new Error(`${file} does not contain ${from} once`)
      return { code: code.replace(from, () => to), map: null }
    }
  }
})

const plugins = [
  // ioredis adds 500 methods to a prototype one by one, each of which copies the description of all before it: 6 MB of garbage.
  // An object from which a property was deleted is a hash table, until it is first used.
  replaceIn(
    "ioredis/built/utils/Commander.js",
    "commands.forEach(",
    "Commander.prototype.a = Commander.prototype.b = 0;\ndelete Commander.prototype.a;\ndelete Commander.prototype.b;\ncommands.forEach("
  ),
  // The first segmenter loads its tables; only the help, and questions that redis-lock never asks, need one.
  replaceIn(
    "effect/dist/cli/CliOutput.js",
    "const graphemeSegmenter = /*#__PURE__*/new Intl.Segmenter(",
    "const graphemeSegmenter = { segment: text => segmenter().segment(text) };\nconst segmenter = () => new Intl.Segmenter("
  ),
  {
    name: "ascii",
    // one character beyond Latin-1 doubles the memory of the whole text
    generateBundle(_, bundle) {
      for (const chunk of Object.values(bundle)) {
        chunk.code = chunk.code.replaceAll(
          /[^\0-\x7f]/g,
          (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`
        )
      }
    }
  }
]

rmSync("bundle", { recursive: true, force: true })
// the memory store is never used here
const bundle = await rolldown({ input: "dist/bin.js", platform: "node", external: ["fengari"], plugins })
await bundle.write({
  dir: "bundle",
  entryFileNames: "redis-lock.js",
  chunkFileNames: ({ name }) => (name === "ui" ? "ui/ui.js" : `lib/${name}.js`),
  format: "esm",
  // Node.js keeps the text in memory; the names of functions and classes stay, for the stacks of bug reports
  comments: false,
  minify: { compress: true, mangle: { keepNames: true }, codegen: { removeWhitespace: true } },
  // parsing takes ten times the size of a file at its peak; these are of 130 to 340 KB
  codeSplitting: {
    groups: [
      { name: "ioredis", test: /node_modules.ioredis/ },
      { name: "runtime", test: /effect.dist.(?:Effect|Layer|Queue|Stream)\.js/ },
      { name: "effect", test: /node_modules/ },
      { name: "locks", test: /packages.(?:core|ioredis).dist/ }
    ].map((group) => ({ ...group, tags: ["$initial"] }))
  }
})
await bundle.close()
