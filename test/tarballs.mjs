// `pnpm tarballs [folder]`: packs the published packages, for `npm install` elsewhere, and prints the command.
import { execFileSync } from "node:child_process"
import { mkdirSync, readdirSync, readFileSync } from "node:fs"
import { join, relative, resolve } from "node:path"

const folder = resolve(process.argv[2] ?? "tarballs")
mkdirSync(folder, { recursive: true })
const published = readdirSync("packages")
  .map((directory) => JSON.parse(readFileSync(join("packages", directory, "package.json"), "utf8")))
  .filter((manifest) => manifest.private !== true)
const filters = published.flatMap(({ name }) => ["--filter", name])
execFileSync("pnpm", ["--recursive", ...filters, "pack", "--pack-destination", folder], {
  stdio: ["ignore", "ignore", "inherit"]
})

const tarballOf = (name) => {
  const { version } = published.find((manifest) => manifest.name === name)
  return join(folder, `${name.replace("@", "").replace("/", "-")}-${version}.tgz`)
}
const needed = ["effect-redis-lock", "@effect-redis-lock/ioredis"]
const others = published.filter(({ name }) => !needed.includes(name))
console.log(
  `${published.length} packages in ${relative(".", folder) || folder}. For locks on Redis, run in your project (with pnpm: pnpm add ...):\n`
)
console.log(`npm install effect @effect/platform-node@latest ioredis ${needed.map(tarballOf).join(" ")}`)
console.log("\nTo that, add what you need of the others:\n")
for (const { name } of others) console.log(tarballOf(name))
