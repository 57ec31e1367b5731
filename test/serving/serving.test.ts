/**
 * The bounds that docs/contention.md names, counted on real processes: how many requests that came later are served before one.
 */
import { RedisServer } from "@effect-redis-lock/testing"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Round } from "../faults/fixtures/visitor.ts"
import { freshName } from "../kit/names.ts"
import type { Shape } from "../simulation/liveness.ts"
import {
  permitPasses,
  turnsOfBothSides,
  turnsOfMembers,
  turnsOfOthers,
  turnsOfOthersBeside
} from "../simulation/livenessKinds.ts"
import type { LoadName } from "./loads.ts"
import { measure } from "./measure.ts"

const processes = 3
const sectionMillis = 5

/** For a spin lock there is none. */
const bounds: Partial<Record<LoadName, (shape: Shape) => number>> = {
  Lock: turnsOfOthers,
  FencedLock: turnsOfOthers,
  NonReentrantLock: turnsOfOthers,
  FairLock: () => 0,
  writeLock: turnsOfOthers,
  "readLock and writeLock in turn": turnsOfBothSides,
  "MultiLock of two": (shape) => turnsOfMembers(shape, 2),
  "MultiLock beside its members": (shape) => turnsOfMembers(shape, 2),
  "Lock that is a member of MultiLocks": turnsOfOthersBeside,
  "Semaphore of three": permitPasses,
  "PermitSemaphore of three": permitPasses
}

for (const fibers of [2, 8]) {
  it.live(
    `No request is passed over more often than its bound says, in ${processes} processes of ${fibers} fibers`,
    () =>
      Effect.gen(function* () {
        // of its own: what others send while MONITOR is answered ends the connection of ioredis
        const server = yield* RedisServer.start()
        const loads = Object.keys(bounds) as ReadonlyArray<LoadName>
        const rounds = loads.map((load): Round => ({
          load,
          name: freshName(load),
          fibers,
          sections: 150,
          sectionMillis,
          longestPauseMillis: 10
        }))
        const services = yield* measure(server.url, processes, rounds)
        const shape = { processes, fibers, sectionMillis, pauseMillis: 5 }
        services.forEach(({ passedByOthers, requests }, index) => {
          const { load } = rounds[index]!
          assert.isAtLeast(requests, 150, load)
          // A fair lock is judged by the order in which the requests took effect. Elsewhere only the first waiter of a process asks Redis, so
          // tickets tell the order: one request of each fiber of another process may overtake one that is on its way.
          const underWay = load === "FairLock" ? 0 : (processes - 1) * fibers
          assert.isAtMost(passedByOthers, bounds[load]!(shape) + underWay, load)
        })
      })
  )
}
