/**
 * A cluster of runner processes under faults, one after the other. Runners are killed, stopped and told to end, and start again at the same port; Redis
 * is killed and restarted with its data.
 */
import { now } from "@effect-redis-lock/chaos/events"
import { durable } from "@effect-redis-lock/chaos/sites"
import { RedisServer } from "@effect-redis-lock/testing"
import { Effect, Fiber, Schedule } from "effect"
import { until } from "../kit/eventually.ts"
import { openSite, type RunnerProcess, violationsOf } from "./site.ts"

const leaseMillis = 3000
export const runnerCount = 3

export const faultNames = ["kill", "stop", "blink", "end", "restart"] as const

/** Plays faults, each of one of the runners. `random` is a whole number below the given one. The result is what did not hold, and who held what. */
export const play = Effect.fnUntraced(function* (
  faults: Iterable<readonly [fault: (typeof faultNames)[number], of: number]>,
  random: (below: number) => number
) {
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

  const plays = {
    kill: gone("SIGKILL", "is killed"),
    stop: Effect.fnUntraced(function* (victim: RunnerProcess, left: ReadonlyArray<RunnerProcess>) {
      // each entity has messages for seconds: what has come to it when it is stopped must not all run when it continues
      yield* site.send(30).pipe(Effect.repeat({ times: 40 }))
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

  for (const [fault, of] of faults) {
    yield* Effect.sleep(random(2000))
    const left = runners.filter((_, other) => other !== of)
    runners[of] = yield* plays[fault](runners[of]!, left)
    yield* site.balanced(runners, 0)
  }

  yield* Fiber.interrupt(traffic)
  yield* site.allHandled
  const history = site.history()
  problems.push(...(yield* violationsOf(history)))
  console.log(site.summary())
  return { problems, history }
}, Effect.scoped)
