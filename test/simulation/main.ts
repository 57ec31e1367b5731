/**
 * `pnpm worlds [seeds] [first seed] [kind]`: worlds of faults, one for each seed, of each kind in turn or of those whose title
 * contains some words. One seed alone prints its whole history where it fails.
 */
import { mkdirSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { faultyWorlds, kinds, smallWorlds } from "./kinds.ts"
import { livenessWorld } from "./liveness.ts"
import { livenessKinds } from "./livenessKinds.ts"
import { type Report, world, WorldFailure } from "./world.ts"

interface Play {
  readonly title: string
  readonly play: (seed: number) => Report
  readonly sum: Report
  worlds: number
  failed: number
}

const playOf = (title: string, play: Play["play"]): Play => ({
  title,
  play,
  sum: { entered: 0, lost: 0, refused: 0, commands: 0 },
  worlds: 0,
  failed: 0
})

const safety = Object.entries(kinds).flatMap(([kind, { servers, ...workload }]) =>
  servers.flatMap((count) =>
    [false, true].map((clocksStep) =>
      playOf(
        `${kind} on ${count === 1 ? "one server" : `${count} servers`}${clocksStep ? " with clocks that step" : ""}`,
        (seed) => world({ ...workload, servers: count, clocksStep, seed })
      )
    )
  )
)

const liveness = Object.entries(livenessKinds).map(([kind, load]) =>
  playOf(`everybody is served: ${kind}`, (seed) => livenessWorld({ ...load, seed }))
)

const others = [...smallWorlds, ...faultyWorlds].map(([title, small]) =>
  playOf(title, (seed) => world({ ...small, seed }))
)

const all: ReadonlyArray<Play> = [...safety, ...liveness, ...others]

const [seedsText = "1000", firstText = "1", ...words] = process.argv.slice(2)
const seeds = Number(seedsText)
const first = Number(firstText)
const wanted = words.join(" ")
const exact = all.filter(({ title }) => title === wanted)
const plays = exact.length > 0 ? exact : all.filter(({ title }) => title.includes(wanted))
if (!Number.isInteger(seeds) || !Number.isInteger(first) || plays.length === 0) {
  console.error(
    `pnpm worlds [seeds] [first seed] [kind], where a kind is one of:\n${all.map(({ title }) => title).join("\n")}`
  )
  process.exit(2)
}

/** Writes the history of a failed world to a file, and returns its path. */
const written = (title: string, seed: number, { file }: WorldFailure): string => {
  const folder = join(tmpdir(), "effect-redis-lock-worlds")
  mkdirSync(folder, { recursive: true })
  const path = join(folder, `${title.replaceAll(/\W+/g, "-")}-${seed}.json`)
  writeFileSync(path, JSON.stringify({ title: `${title}, seed ${seed}`, ...file }))
  return path
}

const longHistories = 3
let failures = 0
const startedAt = Date.now()

for (let seed = first; seed < first + seeds; seed++) {
  const play = plays[seed % plays.length]!
  play.worlds++
  try {
    const report = play.play(seed)
    for (const key of Object.keys(play.sum) as Array<keyof Report>) play.sum[key] += report[key]
  } catch (error) {
    play.failed++
    if (!(error instanceof WorldFailure)) throw error
    console.log(`\n${play.title}, seed ${seed}: ${error.problem}`)
    if (failures++ < longHistories) console.log(error.history.last(seeds === 1 ? Number.POSITIVE_INFINITY : 80))
    console.log(`to repeat it: pnpm worlds 1 ${seed} "${play.title}"`)
    console.log(
      `to see who held what: open ${written(play.title, seed, error)} at the end of the playground (pnpm docs:dev)`
    )
  }
  const done = seed - first + 1
  if (done % 1000 === 0) {
    console.log(`${done} worlds, ${failures} failed, ${Math.round((Date.now() - startedAt) / 1000)} s`)
  }
}

for (const { failed, sum, title, worlds } of plays) {
  if (worlds === 0) continue
  const { commands, entered, lost, refused } = sum
  console.log(
    `${title}: ${worlds} worlds, ${failed} failed; ${entered} sections entered, ${lost} lost, ${refused} refused, ${commands} commands`
  )
}
console.log(`${seeds} worlds, ${failures} failed, ${Math.round((Date.now() - startedAt) / 1000)} s`)
process.exitCode = failures > 0 ? 1 : 0
