// Packs the published packages as `pnpm publish` would, and looks at what users would get: which files, which fields of
// package.json, what publint says of it, and whether TypeScript resolves every entry point (Are the types wrong?).
import { execFile } from "node:child_process"
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("..", import.meta.url))
const fields =
  "author bugs description engines exports files homepage keywords license publishConfig repository type".split(" ")

const packages = readdirSync(join(root, "packages"))
  .toSorted()
  .map((entry) => join(root, "packages", entry))
  .map((directory) => ({ directory, manifest: JSON.parse(readFileSync(join(directory, "package.json"), "utf8")) }))
  .filter(({ manifest }) => !manifest.private)

/** Never rejects for a program that says no. */
const run = (command, args) =>
  new Promise((resolve, reject) => {
    execFile(command, args, { cwd: root, encoding: "utf8", maxBuffer: 2 ** 26 }, (error, stdout, stderr) => {
      if (error !== null && typeof error.code !== "number")
        reject(new Error(`${error.message}: run this by pnpm packages:check`))
      else resolve({ failed: error !== null, stdout, output: `${stdout}${stderr}`.trim() })
    })
  })

const sourcesOf = (directory) =>
  readdirSync(join(directory, "src"), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts"))
    .map((file) => file.slice(0, -".ts".length))

const staticFilesOf = (directory) => {
  const folder = "src/ui/page/static"
  return readdirSync(join(directory, folder)).map((file) => `${folder}/${file}`)
}

const bundleParts = [
  "lib/effect.js",
  "lib/ioredis.js",
  "lib/locks.js",
  "lib/rolldown-runtime.js",
  "lib/runtime.js",
  "ui/ui.js"
].map((file) => `bundle/${file}`)

/** The modules of the page of a command, which a browser loads. */
const pageModulesOf = (directory) => [
  ...sourcesOf(directory).filter((source) => source.startsWith("ui/page/")),
  "span",
  "visible"
]

const expectedFiles = (directory, manifest) => {
  const { bin } = manifest.publishConfig
  return new Set([
    "LICENSE",
    "README.md",
    "package.json",
    ...(manifest.name === "effect-redis-lock" ? ["SKILL.md"] : []),
    ...(bin === undefined
      ? // sources go with it: source maps point to them
        sourcesOf(directory).flatMap((source) => [
          `src/${source}.ts`,
          ...["js", "js.map", "d.ts", "d.ts.map"].map((extension) => `dist/${source}.${extension}`)
        ])
      : // a command is bundled when it is packed, so that it starts fast and needs no other package, and has files for a browser
        [
          ...Object.values(bin).map((file) => file.replace("./", "")),
          ...bundleParts,
          ...staticFilesOf(directory),
          ...pageModulesOf(directory).map((source) => `dist/${source}.js`)
        ])
  ])
}

/** Whether a command runs in an empty project that has nothing but its package. */
const commandProblems = async ({ name, publishConfig: { bin } }, tarball) => {
  if (bin === undefined) return []
  const project = mkdtempSync(join(out, "project-"))
  writeFileSync(join(project, "package.json"), "{}")
  const installed = await run("npm", ["install", "--prefix", project, "--offline", "--no-audit", "--no-fund", tarball])
  if (installed.failed) return [installed.output]
  const others = readdirSync(join(project, "node_modules"), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith("package.json") && file !== join(name, "package.json") && !file.startsWith("."))
    .map((file) => `its installation brings another package: ${file}`)
  const runs = await Promise.all(
    Object.keys(bin).map((command) => run(join(project, "node_modules", ".bin", command), ["--help"]))
  )
  return [...others, ...runs.filter(({ failed }) => failed).map(({ output }) => output)]
}

const filesProblems = (directory, manifest, files) => {
  const expected = expectedFiles(directory, manifest)
  const packed = new Set(files)
  const missing = [...expected].filter((file) => !packed.has(file))
  const surplus = files.filter((file) => !expected.has(file))
  return [
    ...(missing.length > 0 ? [`missing: ${some(missing)}`] : []),
    // a build does not remove what an earlier one has left
    ...(surplus.length > 0
      ? [`without a source, or strangers: ${some(surplus)}. Perhaps of an earlier build: pnpm clean`]
      : [])
  ]
}

const some = (files) => `${files.slice(0, 4).join(", ")}${files.length > 4 ? ` and ${files.length - 4} more` : ""}`

/** The entry points by name, also those that a pattern stands for. */
const entryPoints = (directory, { exports }) =>
  Object.entries(exports)
    .filter(([, target]) => target !== null)
    .flatMap(([subpath]) =>
      subpath.includes("*")
        ? sourcesOf(directory)
            .filter((source) => !source.includes("/"))
            .map((source) => subpath.replace("*", source))
        : [subpath]
    )
    .filter((subpath) => exports[subpath] !== null)

const out = mkdtempSync(join(tmpdir(), "packed-"))
process.on("exit", () => rmSync(out, { recursive: true, force: true }))

const look = async ({ directory, manifest, tarball }) => {
  const files = tarball.files.map(({ path }) => path)
  const [publint, types] = await Promise.all([
    run("publint", ["run", tarball.filename, "--strict"]),
    // ESM alone: nothing is promised to `require`, nor to TypeScript's resolution of before `exports`
    run("attw", [
      ...[tarball.filename, "--profile", "esm-only", "--no-definitely-typed", "--format", "ascii", "--no-emoji"],
      ...["--entrypoints", ...entryPoints(directory, manifest)]
    ])
  ])
  const problems = [
    ...fields.filter((field) => manifest[field] === undefined).map((field) => `package.json has no ${field}`),
    ...filesProblems(directory, manifest, files),
    ...(await commandProblems(manifest, tarball.filename)),
    ...[publint, types].filter(({ failed }) => failed).map(({ output }) => output)
  ]
  const verdict = problems.length === 0 ? "all well" : "not to be published like this"
  return [`${manifest.name}: ${files.length} files, ${verdict}`, ...problems].join("\n").replaceAll("\n", "\n  ")
}

const names = packages.flatMap(({ manifest }) => ["--filter", manifest.name])
const packing = await run("pnpm", ["--recursive", ...names, "pack", "--json", "--pack-destination", out])
if (packing.failed) throw new Error(packing.output)
const tarballs = JSON.parse(packing.stdout)
const verdicts = await Promise.all(
  packages.map((package_) =>
    look({ ...package_, tarball: tarballs.find(({ name }) => name === package_.manifest.name) })
  )
)
console.log(verdicts.join("\n"))
process.exit(verdicts.some((verdict) => verdict.includes("\n")) ? 1 : 0)
