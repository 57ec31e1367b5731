/**
 * The faults of a world.
 */
import { Array as Arr, Effect } from "effect"
import { between, type Link, type Random, type Server } from "./network.ts"

export interface FaultyWorld {
  readonly random: Random
  readonly links: ReadonlyArray<Link>
  readonly servers: ReadonlyArray<Server>
  /** Whether a server that crashes may come back without its data. */
  readonly forgets: boolean
  readonly clocksStep: boolean
  /** Whether replicas take over. */
  readonly failsOver: boolean
  readonly leaseMillis: number
  readonly longestStepMillis: number
}

/** Injects faults, one at a time: cut, broken and stalled connections, servers that stop, crash, have their clocks set or fail over. */
export const injectFaults = ({
  clocksStep,
  failsOver,
  forgets,
  leaseMillis,
  links,
  longestStepMillis,
  random,
  servers
}: FaultyWorld): Effect.Effect<never> =>
  Effect.gen(function* () {
    const kinds = [0, 1, 2, 3, 4, ...(clocksStep ? [5] : []), ...(failsOver ? Arr.replicate(6, 10) : [])]
    while (true) {
      // as many in the course of a lease, whatever its length
      yield* Effect.sleep((between(random, 50, 800) * leaseMillis) / 1000)
      const link = links[between(random, 0, links.length - 1)]!
      const server = servers[between(random, 0, servers.length - 1)]!
      switch (kinds[between(random, 0, kinds.length - 1)]) {
        case 0: {
          link.cut()
          yield* Effect.sleep(between(random, 1, 600))
          link.isCut = false
          break
        }
        case 1: {
          link.break()
          break
        }
        case 2: {
          server.stop()
          yield* Effect.sleep(between(random, 1, 2 * leaseMillis))
          server.resume()
          break
        }
        case 3: {
          const withData = !forgets || random() < 0.5
          server.crash()
          // without its data it comes back later than any lease lasts, as the documentation asks for
          yield* Effect.sleep(withData ? between(random, 1, 500) : leaseMillis + 1)
          server.restart(withData)
          break
        }
        case 4: {
          const millis = between(random, 100, 3000)
          link.stall(millis)
          if (random() < 0.5) {
            yield* Effect.sleep(between(random, 0, millis))
            link.break()
          }
          break
        }
        case 5: {
          const millis = between(random, -longestStepMillis, longestStepMillis)
          server.stepClock(millis)
          yield* Effect.sleep(between(random, 1, 2 * leaseMillis))
          server.stepClock(-millis)
          break
        }
        case 6: {
          // the client that is cut does not hear of it
          link.cut()
          for (let millis = 0; millis < 500 && !server.isReplicaBehind; millis++) yield* Effect.sleep(1)
          server.failOver()
          yield* Effect.sleep(between(random, 1, leaseMillis / 2))
          link.isCut = false
          break
        }
      }
    }
  })
