/**
 * `pnpm runners [minutes] [seed]`: a cluster of runner processes under random faults, two minutes by default. Runners are killed, stopped
 * and told to end, and start again at the same port; Redis is killed and restarted with its data. Ends with 1 if anything ran in two places
 * at once, if a message was not handled, or if shards were not taken over within a lease and two seconds.
 */
import { randomOf } from "@effect-redis-lock/playground/VirtualTime"
import { RedisServer } from "@effect-redis-lock/testing"
import { Effect, Fiber, References, Schedule } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { openSite, type RunnerProcess } from "./site.ts"

const leaseMillis = 3000
const runnerCount = 3

const minutes = Number(process.argv[2] ?? 2)
const seed = Number(process.argv[3] ?? Date.now() % 1_000_000)

/** The same faults for the same seed. */
const next = randomOf(seed)
const random = (below: number): number => Math.floor(next() * below)

const run = Effect.gen(function* () {
  const directory = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "runners-"))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
  )
  const server = yield* RedisServer.start({
    args: ["--appendonly", "yes", "--appendfsync", "always", "--dir", directory]
  })
  const site = yield* openSite({ url: server.url, leaseMillis })
  const runners: Array<RunnerProcess> = []
  for (let i = 0; i < runnerCount; i++) runners.push(yield* site.start())
  yield* site.balanced(runners, 0)
  const traffic = yield* site.send(30).pipe(Effect.repeat(Schedule.spaced(250)), Effect.forkScoped)

  const problems: Array<string> = []
  const takeover = Effect.fnUntraced(function* (what: string, since: number, left: ReadonlyArray<RunnerProcess>) {
    const took = yield* site.balanced(left, since)
    const lag = yield* site.lagSince(left, since)
    console.log(
      `${what}: all shards are taken over after ${took} ms${lag > 0 ? `, of which the machine stood still ${lag}` : ""}`
    )
    if (took - lag > leaseMillis + 2000) problems.push(`${what}: taken over after ${took} ms`)
  })

  const faults = {
    kill: Effect.fnUntraced(function* (victim: RunnerProcess, left: ReadonlyArray<RunnerProcess>) {
      const since = yield* site.serverMillis
      yield* victim.signal("SIGKILL")
      yield* takeover(`${victim.name} is killed`, since, left)
      return yield* site.start(victim.port)
    }),
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
    end: Effect.fnUntraced(function* (victim: RunnerProcess, left: ReadonlyArray<RunnerProcess>) {
      const since = yield* site.serverMillis
      yield* victim.signal("SIGTERM")
      yield* takeover(`${victim.name} is told to end`, since, left)
      yield* victim.ended
      return yield* site.start(victim.port)
    }),
    restart: Effect.fnUntraced(function* (victim: RunnerProcess) {
      yield* server.kill
      yield* Effect.sleep(random(leaseMillis * 1.5))
      yield* server.restart
      console.log("Redis is restarted")
      return victim
    })
  }
  const names = Object.keys(faults) as ReadonlyArray<keyof typeof faults>

  const until = performance.now() + minutes * 60_000
  while (performance.now() < until) {
    yield* Effect.sleep(random(2000))
    const index = random(runnerCount)
    const left = runners.filter((_, other) => other !== index)
    runners[index] = yield* faults[names[random(names.length)]!](runners[index]!, left)
    yield* site.balanced(runners, 0)
  }

  yield* Fiber.interrupt(traffic)
  yield* site.allHandled
  problems.push(...(yield* site.violations))
  console.log(yield* site.summary)
  for (const problem of problems) console.error(problem)
  return problems.length
}).pipe(Effect.scoped, Effect.provideService(References.MinimumLogLevel, "None"))

console.log(`seed ${seed}, ${minutes} minutes`)
process.exitCode = (await Effect.runPromise(run)) === 0 ? 0 : 1
console.log(process.exitCode === 0 ? "nothing ran in two places at once" : `repeat it: pnpm runners ${minutes} ${seed}`)
