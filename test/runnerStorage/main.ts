/**
 * `pnpm runners [minutes] [seed]`: a cluster of runner processes under random faults, two minutes by default. Runners are killed, stopped
 * and told to end, and start again at the same port; Redis is killed and restarted with its data. Ends with 1 if anything ran in two places
 * at once, if a message was not handled, or if shards were not taken over within a lease and two seconds. What was held then is in a file, which
 * `pnpm chaos check` reads.
 */
import { buildChecker } from "@effect-redis-lock/chaos/check"
import { now } from "@effect-redis-lock/chaos/events"
import { writeHistory } from "@effect-redis-lock/chaos/history"
import { durable } from "@effect-redis-lock/chaos/sites"
import { randomOf } from "@effect-redis-lock/playground/VirtualTime"
import { RedisServer } from "@effect-redis-lock/testing"
import { Effect, Fiber, References, Schedule } from "effect"
import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { until } from "../kit/eventually.ts"
import { openSite, type RunnerProcess, violationsOf } from "./site.ts"

const leaseMillis = 3000
const runnerCount = 3

const minutes = Number(process.argv[2] ?? 2)
const seed = Number(process.argv[3] ?? Date.now() % 1_000_000)

/** The same faults for the same seed. */
const next = randomOf(seed)
const random = (below: number): number => Math.floor(next() * below)

const run = Effect.gen(function* () {
  const server = yield* RedisServer.start({ args: yield* durable })
  const site = yield* openSite({ url: server.url, leaseMillis })
  const runners: Array<RunnerProcess> = []
  for (let i = 0; i < runnerCount; i++) runners.push(yield* site.start())
  yield* site.balanced(runners, 0)
  const traffic = yield* site.send(30).pipe(Effect.repeat(Schedule.spaced(250)), Effect.forkScoped)

  const problems: Array<string> = []
  const takeover = Effect.fnUntraced(function* (what: string, since: number, left: ReadonlyArray<RunnerProcess>) {
    const took = yield* site.balanced(left, since)
    const lag = site.lagSince(left, since)
    console.log(
      `${what}: all shards are taken over after ${took} ms${lag > 0 ? `, of which the machine stood still ${lag}` : ""}`
    )
    if (took - lag > leaseMillis + 2000) problems.push(`${what}: taken over after ${took} ms`)
  })

  const gone = (signal: "SIGKILL" | "SIGTERM", what: string) =>
    Effect.fnUntraced(function* (victim: RunnerProcess, left: ReadonlyArray<RunnerProcess>) {
      const since = now()
      yield* victim.signal(signal)
      yield* takeover(`${victim.name} ${what}`, since, left)
      yield* until(`${victim.name} ends`, victim.hasEnded)
      return yield* site.start(victim.port)
    })

  const faults = {
    kill: gone("SIGKILL", "is killed"),
    stop: Effect.fnUntraced(function* (victim: RunnerProcess, left: ReadonlyArray<RunnerProcess>) {
      const stop = yield* site.stop(victim)
      yield* takeover(`${victim.name} is stopped`, stop.from, left)
      yield* Effect.sleep(random(3000))
      yield* stop.resume
      return victim
    }),
    blink: Effect.fnUntraced(function* (victim: RunnerProcess) {
      const stop = yield* site.stop(victim)
      yield* Effect.sleep(random(leaseMillis))
      yield* stop.resume
      console.log(`${victim.name} was stopped for less than its lease`)
      return victim
    }),
    end: gone("SIGTERM", "is told to end"),
    restart: Effect.fnUntraced(function* (victim: RunnerProcess) {
      yield* server.kill
      yield* Effect.sleep(random(leaseMillis * 1.5))
      yield* server.restart
      console.log("Redis is restarted")
      return victim
    })
  }
  const names = Object.keys(faults) as ReadonlyArray<keyof typeof faults>

  const end = now() + minutes * 60_000
  while (now() < end) {
    yield* Effect.sleep(random(2000))
    const index = random(runnerCount)
    const left = runners.filter((_, other) => other !== index)
    runners[index] = yield* faults[names[random(names.length)]!](runners[index]!, left)
    yield* site.balanced(runners, 0)
  }

  yield* Fiber.interrupt(traffic)
  yield* site.allHandled
  const history = site.history()
  problems.push(...(yield* violationsOf(history)))
  console.log(site.summary())
  for (const problem of problems) console.error(problem)
  if (problems.length > 0) {
    const file = join(mkdtempSync(join(tmpdir(), "runners-")), "history.jsonl")
    writeHistory(file, history)
    console.error(`what was held: ${file}`)
  }
  return problems.length
}).pipe(Effect.scoped, Effect.provideService(References.MinimumLogLevel, "None"))

const missing = await buildChecker()
if (missing !== undefined) throw new Error(`what runs in two places cannot be found: ${missing}`)
console.log(`seed ${seed}, ${minutes} minutes`)
process.exitCode = (await Effect.runPromise(run)) === 0 ? 0 : 1
console.log(process.exitCode === 0 ? "nothing ran in two places at once" : `repeat it: pnpm runners ${minutes} ${seed}`)
