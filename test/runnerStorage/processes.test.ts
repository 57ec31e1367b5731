/**
 * A cluster for real: three runner processes that talk over sockets, 300 shards, entities, a singleton and a cron job; runners are killed,
 * stopped and told to end. `pnpm runners` does the same for longer, at random.
 */
import { now } from "@effect-redis-lock/chaos/events"
import { assert } from "@effect/vitest"
import { Effect, Fiber, Schedule } from "effect"
import { RedisServer } from "@effect-redis-lock/testing"
import { until } from "../kit/eventually.ts"
import { openSite, violationsOf } from "./site.ts"
import { testLiveQuietly } from "../kit/test.ts"

const leaseMillis = 3000

testLiveQuietly(
  "Runners that are killed, stopped and told to end lose their shards to others within a lease and two seconds, and nothing runs twice at once",
  function* () {
    const server = yield* RedisServer.start()
    const site = yield* openSite({ url: server.url, leaseMillis })
    const [one, two, three] = [yield* site.start(), yield* site.start(), yield* site.start()]
    yield* site.balanced([one, two, three], now())
    const traffic = yield* site.send(30).pipe(Effect.repeat(Schedule.spaced(250)), Effect.forkScoped)
    yield* Effect.sleep(500)

    const killed = now()
    yield* one.signal("SIGKILL")
    const afterKill = yield* site.balanced([two, three], killed)
    assert.isAtMost(afterKill - site.lagSince([two, three], killed), leaseMillis + 2000, "after a kill")

    const four = yield* site.start(one.port)
    yield* site.balanced([two, three, four], killed)

    // each entity has messages for seconds: what has come to it when it is stopped must not all run when it continues
    yield* site.send(30).pipe(Effect.repeat({ times: 40 }))
    const stop = yield* site.stop(two)
    const afterStop = yield* site.balanced([three, four], stop.from)
    assert.isAtMost(afterStop - site.lagSince([three, four], stop.from), leaseMillis + 2000, "after a stop")
    yield* stop.resume
    yield* site.balanced([two, three, four], stop.from)

    const told = now()
    yield* three.signal("SIGTERM")
    const afterEnd = yield* site.balanced([two, four], told)
    assert.isAtMost(afterEnd - site.lagSince([two, four], told), leaseMillis + 2000, "after an end")
    yield* until("the third one ends", three.hasEnded)

    yield* Fiber.interrupt(traffic)
    yield* site.allHandled
    assert.deepStrictEqual(yield* violationsOf(site.history()), [], "something ran in two places at once")
    console.log(`taken over: killed ${afterKill} ms, stopped ${afterStop} ms, ended ${afterEnd} ms; ${site.summary()}`)
  }
)
