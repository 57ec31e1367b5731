/**
 * `pnpm elections [minutes] [seed]`: five processes campaign under random faults, two minutes by default, and then resign two hundred times.
 * Exits with 1 if two processes led at once by the server's time, if a leader that was killed or stopped was not replaced within its
 * lease and a second, or if one in a hundred hand-overs took longer than 50 ms. Delays of the machine itself are allowed for.
 */
import { randomOf } from "@effect-redis-lock/playground/VirtualTime"
import { Effect, References } from "effect"
import { between } from "../simulation/network.ts"
import { percentile } from "./judge.ts"
import { faults, leaseMillis, openElection, playFault } from "./site.ts"

const minutes = Number(process.argv[2] ?? 2)
const seed = Number(process.argv[3] ?? Date.now() % 1_000_000)

const resignations = 200
const longestHandOverMillis = 50

/** How late a timer fired because the machine was busy, milliseconds. */
const lags: Array<{ readonly at: number; readonly millis: number }> = []
let expected = performance.now() + 10
setInterval(() => {
  const at = performance.now()
  lags.push({ at, millis: Math.max(0, at - expected) })
  expected = at + 10
}, 10).unref()
const lagsSince = (from: number) => lags.flatMap(({ at, millis }) => (at >= from ? [millis] : []))

const underFaults = Effect.gen(function* () {
  const random = randomOf(seed)
  const problems: Array<string> = []
  const site = yield* openElection()
  let pauses = 0
  const took: Record<string, Array<number | undefined>> = {}
  const until = performance.now() + minutes * 60_000
  while (performance.now() < until) {
    yield* Effect.sleep(between(random, 0, 1000))
    const fault = faults[between(random, 0, faults.length - 1)]!
    if (fault === "stop" || fault === "blink") pauses++
    const since = performance.now()
    const millis = yield* playFault(site, fault, {
      stopMillis: between(random, 0, fault === "blink" ? leaseMillis - 200 : 2 * leaseMillis),
      awayMillis: between(random, 0, 2 * leaseMillis)
    })
    ;(took[fault] ??= []).push(millis)
    const lag = Math.max(0, ...lagsSince(since))
    if (fault !== "resign" && millis !== undefined && millis > leaseMillis + 1000 + lag) {
      problems.push(`${fault}: the next leader was elected after ${Math.round(millis)} ms`)
    }
  }
  yield* site.workingLeader
  yield* Effect.sleep(200)
  for (const [fault, millis] of Object.entries(took)) {
    const known = millis.filter((value) => value !== undefined)
    const elected = `; the next leader was elected after ${Math.round(percentile(known, 50))} ms (median), ${Math.round(Math.max(...known))} ms at most`
    console.log(`${fault}: ${millis.length} times${known.length === 0 ? "" : elected}`)
  }
  console.log(`${site.terms} terms`)
  problems.push(...site.violations)
  // a process can be stopped between its check and its write, once per pause
  const late = yield* site.lateWrites
  if (late > pauses) problems.push(`${late} writes came after those of a later leader, with ${pauses} pauses`)
  return problems
}).pipe(Effect.scoped)

const resigning = Effect.gen(function* () {
  const site = yield* openElection({ isRestarted: false, resignsAfter: 20 })
  yield* site.leaderAfter(0n)
  const since = performance.now()
  // rarely, as looking takes CPU time from the candidates
  while (site.handOvers.length < resignations) yield* Effect.sleep("1 second")
  const handOvers = site.handOvers.slice(0, resignations)
  const [median, slow, slowest] = [50, 99, 100].map((percent) => percentile(handOvers, percent)) as [
    number,
    number,
    number
  ]
  const lag = Math.max(...lagsSince(since))
  console.log(
    `${resignations} resignations; from \`resign\` returned to elected, by the server's time: ${median.toFixed(1)} ms (median), ${slow.toFixed(1)} ms (p99), ${slowest.toFixed(1)} ms at most; timers of this machine were up to ${Math.round(lag)} ms late`
  )
  return [
    ...site.violations,
    ...(slow > longestHandOverMillis + lag
      ? [`one in a hundred hand-overs took longer than ${slow.toFixed(1)} ms`]
      : [])
  ]
}).pipe(Effect.scoped)

console.log(`seed ${seed}, ${minutes} minutes`)
const problems = await Effect.runPromise(
  Effect.map(Effect.all([underFaults, resigning]), (all) => all.flat()).pipe(
    Effect.provideService(References.MinimumLogLevel, "None")
  )
)
for (const problem of problems) console.error(problem)
console.log(problems.length === 0 ? "one led at a time" : `repeat it: pnpm elections ${minutes} ${seed}`)
process.exit(problems.length === 0 ? 0 : 1)
