import type { Connection, Held, Library } from "../Candidate.ts"
import type { Performer } from "../Performer.ts"
import { contend } from "./contention.ts"
import { runPairs } from "./pairs.ts"

const collectGarbage = (): void => {
  if (globalThis.gc === undefined) throw new Error("to be run with --expose-gc")
  globalThis.gc()
  globalThis.gc()
}

/** Performs in this process. */
export const libraryPerformer = async (library: Library, connection: Connection): Promise<Performer> => {
  const session = await library.open(connection)
  let gaveUp = () => 0
  let held: Held | undefined
  return {
    pairs: (order) => runPairs(session, order),
    contend: (order) => contend(session, order),
    wait: async ({ name, waiters }) => {
      gaveUp = session.wait(name, waiters).failed
    },
    gaveUp: async () => gaveUp(),
    hold: async ({ kind, names }) => {
      held = await session.hold(names, kind)
    },
    lost: async () => held!.lost(),
    release: () => held!.release(),
    cpuMicros: async () => {
      const { system, user } = process.cpuUsage()
      return system + user
    },
    heapBytes: async () => {
      collectGarbage()
      return process.memoryUsage().heapUsed
    },
    end: () => {}
  }
}
