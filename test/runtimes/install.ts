/**
 * Installs what a user would, by npm, into folders of their own: the runtimes, and for each client the packed packages of this repository.
 */
import { execFile } from "node:child_process"
import { copyFileSync, existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { type Client, effect, type Runtime } from "./versions.ts"

const root = fileURLToPath(new URL("../../..", import.meta.url))
const smoke = fileURLToPath(new URL("smoke", import.meta.url))

const run = promisify(execFile)

/** By npm, which runs no scripts of packages. */
const install = async (folder: string, dependencies: Readonly<Record<string, string>>): Promise<void> => {
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true, type: "module", dependencies }))
  await run("npm", ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock"], { cwd: folder })
}

/** The tarballs of the published packages, by name. */
export const pack = async (folder: string): Promise<ReadonlyMap<string, string>> => {
  mkdirSync(folder)
  const names = ["effect-redis-lock", "@effect-redis-lock/ioredis", "@effect-redis-lock/cli"]
  const filters = names.flatMap((name) => ["--filter", name])
  const { stdout } = await run("pnpm", ["--recursive", ...filters, "pack", "--json", "--pack-destination", folder], {
    cwd: root,
    maxBuffer: 2 ** 26
  })
  const packed = JSON.parse(stdout) as ReadonlyArray<{ readonly name: string; readonly filename: string }>
  return new Map(packed.map(({ filename, name }) => [name, filename]))
}

/** The path of the runtime's program. */
export const installRuntime = async (runtime: Runtime, folder: string): Promise<string> => {
  await install(folder, runtime.dependencies)
  const program = runtime.program
    .split("/")
    .reduce(
      (path, part) => (part === "*" && existsSync(path) ? join(path, readdirSync(path)[0] ?? part) : join(path, part)),
      join(folder, "node_modules")
    )
  if (!existsSync(program)) throw new Error(`npm has no ${runtime.title} for this machine`)
  return program
}

/** A folder with the programs of `smoke/`, and what they import. */
export const installClient = async (
  client: Client,
  tarballs: ReadonlyMap<string, string>,
  folder: string
): Promise<void> => {
  const ours = Object.fromEntries(client.ours.map((name) => [name, `file:${tarballs.get(name)!}`]))
  await install(folder, { effect, ...client.dependencies, ...ours })
  for (const file of readdirSync(smoke)) if (file.endsWith(".js")) copyFileSync(join(smoke, file), join(folder, file))
}
