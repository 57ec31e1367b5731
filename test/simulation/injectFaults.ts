/**
 * The faults of a world.
 */
import { Effect } from "effect"
import { between, type Link, type Random, type Server } from "./network.ts"

export interface FaultyWorld {
  readonly random: Random
  readonly links: ReadonlyArray<Link>
  readonly servers: ReadonlyArray<Server>
  /** Whether a server that crashes may come back without its data. */
  readonly forgets: boolean
  readonly clocksStep: boolean
  readonly leaseMillis: number
  readonly longestStepMillis: number
}

/** Injects faults, one at a time: cut, broken and stalled connections, servers that stop, crash or have their clocks set. */
export const injectFaults = ({
  clocksStep,
  forgets,
  leaseMillis,
  links,
  longestStepMillis,
  random,
  servers
}: FaultyWorld): Effect.Effect<never> =>
  Effect.gen(function* () {
    const kinds = clocksStep ? 5 : 4
    while (true) {
      yield* Effect.sleep(between(random, 50, 800))
      const link = links[between(random, 0, links.length - 1)]!
      const server = servers[between(random, 0, servers.length - 1)]!
      switch (between(random, 0, kinds)) {
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
      }
    }
  })
