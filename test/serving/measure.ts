/**
 * Lets processes use a lock, and counts for each request how many later ones were served before it.
 */
import { Effect } from "effect"
import { start } from "../faults/processes.ts"
import type { Round } from "../faults/fixtures/visitor.ts"
import { bare } from "../kit/server/bareRedis.ts"
import { besideMultiLocks } from "./loads.ts"

export interface Service {
  readonly requests: number
  /** The most requests of other processes that asked later than one and were served before it. */
  readonly passedByOthers: number
  /** The same of its own process; a fair lock's are counted among the others. */
  readonly passedByOwn: number
  readonly longestWaitMillis: number
  readonly meanWaitMillis: number
}

interface Entry {
  readonly process: number
  readonly ticket: number
  readonly waitedMillis: number
}

/** The order in which the requests for a fair lock and their grants took effect in Redis, by owner. */
interface Seen {
  readonly asked: Map<string, number>
  readonly granted: Map<string, number>
}

/** The most requests for a fair lock that took effect later than one and were granted before it. */
const overtakenIn = ({ asked, granted }: Seen): number =>
  Math.max(
    0,
    ...[...granted].map(
      ([owner, at]) =>
        [...granted].filter(([other, before]) => before < at && asked.get(other)! > asked.get(owner)!).length
    )
  )

/** In the order in which they were served. */
const serviceOf = (entries: ReadonlyArray<Entry>, isJudged: (entry: Entry) => boolean): Service => {
  let passedByOthers = 0
  let passedByOwn = 0
  entries.forEach((entry, index) => {
    if (!isJudged(entry)) return
    const { process, ticket } = entry
    const later = entries.slice(0, index).filter((before) => before.ticket > ticket)
    const own = later.filter((before) => before.process === process).length
    passedByOwn = Math.max(passedByOwn, own)
    passedByOthers = Math.max(passedByOthers, later.length - own)
  })
  const waits = entries.map(({ waitedMillis }) => waitedMillis)
  return {
    requests: entries.length,
    passedByOthers,
    passedByOwn,
    longestWaitMillis: Math.max(...waits),
    meanWaitMillis: waits.reduce((sum, wait) => sum + wait, 0) / waits.length
  }
}

/** Plays rounds with so many processes; the results are in the order of the rounds. */
export const measure = Effect.fnUntraced(function* (url: string, processes: number, rounds: ReadonlyArray<Round>) {
  const redis = yield* bare({ url })
  const seen = new Map(
    rounds
      .filter(({ load }) => load === "FairLock")
      .map(({ name }): [string, Seen] => [name, { asked: new Map(), granted: new Map() }])
  )
  const monitor = yield* Effect.acquireRelease(
    Effect.promise(() => redis.monitor()),
    (monitor) => Effect.sync(() => monitor.disconnect())
  )
  let heard = 0
  let takesEffect: (() => void) | undefined
  monitor.on("monitor", (_time: string, command: ReadonlyArray<string>, source: string) => {
    heard++
    // a request names its keys, how many they are in the third place; a script's own commands come from "lua"
    const [verb = "", key = ""] = command
    if (source === "lua") {
      // a script that only looks at the time takes no effect: the client has yet to learn this server's clock
      if (verb !== "TIME") takesEffect?.()
      const owner = command[2]!
      const lock = seen.get(key)
      if (/^(?:hset|hincrby)$/i.test(verb) && lock?.asked.has(owner) === true && !lock.granted.has(owner)) {
        lock.granted.set(owner, heard)
      }
    } else if (/^(?:eval|evalsha)$/i.test(verb)) {
      const lock = seen.get(command[3]!)
      const owner = command[3 + Number(command[2])]!
      takesEffect = lock === undefined ? undefined : () => lock.asked.has(owner) || lock.asked.set(owner, heard)
    }
  })
  const visitors = yield* Effect.forEach(Array.from({ length: processes }), (_, process) =>
    start("visitor", { url, process, processes, rounds })
  )
  for (const visitor of visitors) {
    yield* visitor.told("ended")
    yield* visitor.ended
  }
  // what was sent before this has been heard
  yield* Effect.promise(async () => {
    const end = new Promise<void>((resolve) => {
      monitor.on("monitor", (_time: string, [verb, text]: ReadonlyArray<string>) => {
        if (verb?.toLowerCase() === "echo" && text === "all heard") resolve()
      })
    })
    await redis.echo("all heard")
    await end
  })
  return yield* Effect.forEach(rounds, ({ load, name }) =>
    Effect.promise(async () => {
      const entries = await redis.lrange(`${name}:entries`, 0, -1)
      const service = serviceOf(
        entries.map((entry): Entry => {
          const [process, ticket, waitedMillis] = entry.split(" ").map(Number) as [number, number, number]
          return { process, ticket, waitedMillis }
        }),
        ({ process }) => load !== besideMultiLocks || process === 0
      )
      const fair = seen.get(name)
      if (fair === undefined) return service
      if (fair.granted.size !== entries.length)
        throw new Error(`${fair.granted.size} of ${entries.length} grants were seen`)
      return { ...service, passedByOthers: overtakenIn(fair), passedByOwn: 0 }
    })
  )
}, Effect.scoped)
