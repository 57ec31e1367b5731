/**
 * What runners have told as the history of a chaos run, whose checker finds what ran in two places at once.
 */
import type { Operation } from "@effect-redis-lock/chaos/history"
import type { Step, Told } from "./entities.ts"

/** A process that did nothing for a while, because it was stopped, or because the machine was too busy for it. */
export interface Stop {
  readonly process: number
  /** Before it was stopped, and when that had certainly happened: in between it may have begun something. */
  readonly from: number
  readonly stopped: number
  /** When it first gave a sign of life again. */
  readonly to: number
  /** When it must have noticed that it has lost its shards, and interrupted what it runs. */
  readonly noticed: number
}

/**
 * A process that continues does not know yet that it has lost its shards, until its next refresh, which is due at once, is answered, and
 * what it runs is interrupted. It claims its shards ten times a second; on a busy machine so many claims take longer than a second.
 */
const NOTICE_MILLIS = 1000
const NOTICE_CLAIMS = 10

/** What was told by a process that has stopped: when it gave a sign of life again, and when it must have noticed. */
export const continued = (
  told: ReadonlyArray<Told>,
  stop: Pick<Stop, "process" | "from" | "stopped"> & { readonly resumed: number }
): Stop => {
  const { from, process, resumed, stopped } = stop
  const since = told.filter((event) => event.process === process && event.at > resumed)
  const to = since[0]?.at ?? resumed
  const claims = since.filter(({ at, event }) => event === "claims" && at > to)
  return { process, from, stopped, to, noticed: Math.max(to + NOTICE_MILLIS, claims[NOTICE_CLAIMS]?.at ?? to) }
}

/**
 * The times in which a process claimed nothing for half a lease, as the machine was too busy: like a stopped one it may have lost its
 * shards meanwhile.
 */
export const stallsOf = (told: ReadonlyArray<Told>, leaseMillis: number): ReadonlyArray<Stop> => {
  const claimed = new Map<number, number>()
  return told.flatMap(({ at, event, process }) => {
    if (event !== "claims") return []
    const from = claimed.get(process) ?? at
    claimed.set(process, at)
    return at - from > leaseMillis / 2 ? [continued(told, { process, from, stopped: from, resumed: from })] : []
  })
}

/** A runner that says less often what it owns may have lost it in between. */
const longestGapMillis = 600

/** All steps, those within a shard among them: a hold lasts as long as each claim of the process has it. */
const stepsOf = function* (told: ReadonlyArray<Told>): Iterable<Omit<Step, "event"> & { readonly process: number }> {
  const claimed = new Map<number, { readonly at: number; readonly holds: ReadonlyMap<number, string> }>()
  for (const event of told) {
    const { at, process } = event
    if (event.event === "stays") yield event
    else {
      const before = claimed.get(process)
      const still = before !== undefined && at - before.at <= longestGapMillis ? before.holds : undefined
      const holds = new Map(event.shards.map((shard) => [shard, still?.get(shard) ?? `${process} from ${at}`]))
      claimed.set(process, { at, holds })
      for (const [shard, hold] of holds) yield { at, process, lock: `shard ${shard}`, hold: `${shard} of ${hold}` }
    }
  }
}

/**
 * What was held, and by whom, as far as it was seen. What a stopped process had begun counts until it was stopped. It does not know of its loss yet
 * when it continues: what it begins then counts from when it must have noticed.
 */
export const historyOf = (told: ReadonlyArray<Told>, stops: ReadonlyArray<Stop>): ReadonlyArray<Operation> => {
  const holds = new Map<
    string,
    { readonly about: { lock: string; process: number; hold: string }; first: number; last: number }
  >()
  for (const { at, hold, lock, process } of stepsOf(told)) {
    const known = holds.get(hold)
    const unaware = stops.filter((stop) => stop.process === process && at >= stop.from && at <= stop.noticed)
    if (known === undefined) {
      if (!unaware.some(({ to }) => at >= to)) holds.set(hold, { about: { lock, process, hold }, first: at, last: at })
    } else if (unaware.length === 0 || !stops.some((stop) => stop.process === process && known.first <= stop.stopped)) {
      known.last = at
    }
  }
  return [...holds.values()].flatMap(({ about, first, last }): ReadonlyArray<Operation> => [
    { op: "acquire", ...about, call: first, return: first, outcome: "ok" },
    { op: "release", ...about, call: last, return: last, outcome: "ok" }
  ])
}

/** For how long in all the slowest of the processes got nowhere, besides what a busy machine always costs. */
export const lagMillis = (
  told: ReadonlyArray<Told>,
  { from, processes, to }: { readonly from: number; readonly to: number; readonly processes: ReadonlyArray<number> }
): number =>
  Math.max(
    0,
    ...processes.map((process) => {
      const claims = told.filter((event) => event.event === "claims" && event.process === process)
      const within = [from, ...claims.map(({ at }) => at).filter((at) => at > from && at < to), to]
      return within.slice(1).reduce((sum, at, index) => sum + Math.max(0, at - within[index]! - 300), 0)
    })
  )
