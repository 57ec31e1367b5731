/**
 * `pnpm failovers [failovers] [seed]`: four processes count under one lock while the master of its servers is replaced, four times by default: by
 * Sentinel and in a cluster, with grants that all replicas acknowledge, and without. Ends with 1 if with acknowledgement an increment of the
 * counter is missing, which nothing protects but the lock, or if ever one of the register is, which refuses writes with old tokens.
 */
import { Effect, References } from "effect"
import { play } from "./campaign.ts"
import { faults, sites } from "./site.ts"

const failovers = Number(process.argv[2] ?? faults.length)
const seed = Number(process.argv[3] ?? Date.now() % 1_000_000)
if (!Number.isInteger(failovers) || failovers < 1 || !Number.isInteger(seed)) {
  console.error("usage: pnpm failovers [failovers] [seed]")
  process.exit(2)
}

const settings = {
  'with `replicas: "all"`': { replicas: "all", within: "500 millis" },
  "without acknowledgement": "none"
} as const

console.log(`${failovers} failovers each, seed ${seed}`)
const problems: Array<string> = []
for (const deployment of Object.keys(sites) as ReadonlyArray<keyof typeof sites>) {
  for (const [how, acknowledge] of Object.entries(settings)) {
    const outcome = await Effect.runPromise(
      play({ deployment, acknowledge, faults, failovers, seed }).pipe(
        Effect.provideService(References.MinimumLogLevel, "None")
      )
    )
    const { counted, lost, played, registered, sections, stale, uncounted, unregistered } = outcome
    const failures = [...outcome.failures].map(([reason, times]) => `${times} ${reason}`).join(", ")
    console.log(
      `${deployment}, ${how}: ${played.join(", ")}\n` +
        `  ${sections} sections, of which ${lost} lost the lock; acquisitions that failed: ${failures || "none"}\n` +
        `  counter: ${counted} increments, ${uncounted} missing\n` +
        `  register: ${registered} increments, ${unregistered} missing; it refused ${stale} with old tokens`
    )
    if (acknowledge !== "none" && uncounted !== 0)
      problems.push(`${deployment}, ${how}: the counter misses ${uncounted}`)
    if (unregistered !== 0) problems.push(`${deployment}, ${how}: the register misses ${unregistered}`)
    if (sections === 0) problems.push(`${deployment}, ${how}: there was no section`)
  }
}
for (const problem of problems) console.error(problem)
console.log(problems.length === 0 ? "nothing is missing" : `repeat it: pnpm failovers ${failovers} ${seed}`)
process.exit(problems.length === 0 ? 0 : 1)
