/**
 * `pnpm runners [minutes] [seed]`: a cluster of runner processes under random faults, two minutes by default. Ends with 1 if anything ran in two places
 * at once, if a message was not handled, or if shards were not taken over within a lease and two seconds. What was held then is in a file, which
 * `pnpm chaos check` reads.
 */
import { buildChecker } from "@effect-redis-lock/chaos/check"
import { now } from "@effect-redis-lock/chaos/events"
import { writeHistory } from "@effect-redis-lock/chaos/history"
import { randomOf } from "@effect-redis-lock/playground/VirtualTime"
import { Effect, References } from "effect"
import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { faultNames, play, runnerCount } from "./play.ts"

const minutes = Number(process.argv[2] ?? 2)
const seed = Number(process.argv[3] ?? Date.now() % 1_000_000)

/** The same faults for the same seed. */
const next = randomOf(seed)
const random = (below: number): number => Math.floor(next() * below)

const faults = function* () {
  for (const end = now() + minutes * 60_000; now() < end;) {
    yield [faultNames[random(faultNames.length)]!, random(runnerCount)] as const
  }
}

const missing = await buildChecker()
if (missing !== undefined) throw new Error(`what runs in two places cannot be found: ${missing}`)
console.log(`seed ${seed}, ${minutes} minutes`)
const { history, problems } = await Effect.runPromise(
  Effect.provideService(play(faults(), random), References.MinimumLogLevel, "None")
)
for (const problem of problems) console.error(problem)
if (problems.length > 0) {
  const file = join(mkdtempSync(join(tmpdir(), "runners-")), "history.jsonl")
  writeHistory(file, history)
  console.error(`what was held: ${file}`)
}
process.exitCode = problems.length === 0 ? 0 : 1
console.log(problems.length === 0 ? "nothing ran in two places at once" : `repeat it: pnpm runners ${minutes} ${seed}`)
