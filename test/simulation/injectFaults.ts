/**
 * The faults of a world.
 */
import { Array as Arr, Effect } from "effect"
import { between, type Link, type Process, type Random, type Server } from "./network.ts"

export interface FaultyWorld {
  readonly random: Random
  readonly links: ReadonlyArray<Link>
  readonly servers: ReadonlyArray<Server>
  /** Whether a server that crashes may come back without its data. */
  readonly forgets: boolean
  readonly clocksStep: boolean
  /** Whether replicas take over. */
  readonly failsOver: boolean
  /** Whether servers refuse commands for a while. */
  readonly refuses: boolean
  /** By how much the clocks of two nodes may differ between which the slot moves; undefined if it does not move. */
  readonly nodeSkewMillis: number | undefined
  /** The processes that stop now and then. */
  readonly processes: ReadonlyArray<Process>
  /** Each closes a client, and opens another in its place. */
  readonly closes: ReadonlyArray<Effect.Effect<void>>
  readonly leaseMillis: number
  readonly longestStepMillis: number
}

/**
 * Injects faults, one at a time: cut, broken and stalled connections, servers that stop, crash, have their clocks set, fail over, refuse
 * commands or give their slot to another node; processes that stop, and clients that are closed.
 */
export const injectFaults = ({
  clocksStep,
  closes,
  failsOver,
  forgets,
  leaseMillis,
  links,
  longestStepMillis,
  nodeSkewMillis,
  processes,
  random,
  refuses,
  servers
}: FaultyWorld): Effect.Effect<never> =>
  Effect.gen(function* () {
    const kinds = [
      ...[0, 1, 2, 3, 4],
      ...(clocksStep ? [5] : []),
      ...(failsOver ? Arr.replicate(6, 10) : []),
      ...(refuses ? Arr.replicate(7, 5) : []),
      ...(nodeSkewMillis === undefined ? [] : Arr.replicate(8, 10)),
      ...(processes.length === 0 ? [] : Arr.replicate(9, 10)),
      ...(closes.length === 0 ? [] : Arr.replicate(10, 5))
    ]
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
        case 7: {
          server.refuse(random, random() < 0.5 ? 1 : 0.5)
          yield* Effect.sleep(between(random, 1, 2 * leaseMillis))
          server.refuses = undefined
          break
        }
        case 8: {
          server.beginToMove()
          yield* Effect.sleep(between(random, 0, 1000))
          server.move(between(random, -nodeSkewMillis! / 2, nodeSkewMillis! / 2))
          break
        }
        case 9: {
          const process = processes[between(random, 0, processes.length - 1)]!
          process.stop()
          yield* Effect.sleep(between(random, 1, 3 * leaseMillis))
          process.resume()
          break
        }
        case 10: {
          yield* closes[between(random, 0, closes.length - 1)]!
          break
        }
      }
    }
  })
