/**
 * What must be true of the steps that runners have logged, by the server's time: nothing of the cluster ran in two places at once.
 */
import type { Claim, Step } from "./entities.ts"

/** A process that did nothing for a while, because it was stopped, or because the machine was too busy for it. */
export interface Stop {
  readonly process: string
  /** Before it was stopped, and when that had certainly happened: in between it may have begun something. */
  readonly from: number
  readonly stopped: number
  /** When it first gave a sign of life again. */
  readonly to: number
  /** When it must have noticed that it has lost its shards, and interrupted what it runs. */
  readonly noticed: number
}

const groupBy = <A>(all: ReadonlyArray<A>, keyOf: (one: A) => string): Map<string, Array<A>> => {
  const groups = new Map<string, Array<A>>()
  for (const one of all) {
    const group = groups.get(keyOf(one))
    if (group === undefined) groups.set(keyOf(one), [one])
    else group.push(one)
  }
  return groups
}

interface Span {
  readonly what: string
  readonly who: string
  readonly process: string
  first: number
  last: number
}

/**
 * A process that continues does not know yet that it has lost its shards, until its next refresh, which is due at once, is answered, and
 * what it runs is interrupted. It claims its shards ten times a second; on a busy machine so many claims take longer than a second.
 */
const NOTICE_MILLIS = 1000
const NOTICE_CLAIMS = 10

/** What the log says of a process that has stopped: when it gave a sign of life again, and when it must have noticed. */
export const continued = (
  log: ReadonlyArray<Step | Claim>,
  stop: Pick<Stop, "process" | "from" | "stopped"> & { readonly resumed: number }
): Stop => {
  const { from, process, resumed, stopped } = stop
  const to = log.find((line) => line.process === process && line.at > resumed)?.at ?? resumed
  const claims = log.filter((line) => "shards" in line && line.process === process && line.at > to)
  return { process, from, stopped, to, noticed: Math.max(to + NOTICE_MILLIS, claims[NOTICE_CLAIMS]?.at ?? to) }
}

/**
 * The times in which a process claimed nothing for half a lease, as the machine was too busy: like a stopped one it may have lost its
 * shards meanwhile.
 */
export const stallsOf = (log: ReadonlyArray<Step | Claim>, leaseMillis: number): ReadonlyArray<Stop> => {
  const claims = log.filter((line): line is Claim => "shards" in line)
  return [...groupBy(claims, (claim) => claim.process).values()].flatMap((said) =>
    said.slice(1).flatMap(({ before, process }, index) => {
      const { at, before: from } = said[index]!
      return before - at > leaseMillis / 2 ? [continued(log, { process, from, stopped: at, resumed: at })] : []
    })
  )
}

const isPardoned = (stops: ReadonlyArray<Stop>, process: string, at: number): boolean =>
  stops.some((stop) => stop.process === process && at >= stop.from && at <= stop.noticed)

/** The pairs that overlap although they are about the same. */
const overlaps = (spans: ReadonlyArray<Span>): ReadonlyArray<string> => {
  const violations: Array<string> = []
  for (const [what, about] of groupBy(spans, (span) => span.what)) {
    const sorted = about.toSorted((one, other) => one.first - other.first)
    let longest: Span | undefined
    for (const span of sorted) {
      if (longest !== undefined && span.first < longest.last) {
        violations.push(
          `${what}: ${span.who} from ${span.first} to ${span.last}, ${longest.who} from ${longest.first} to ${longest.last}`
        )
      }
      if (longest === undefined || span.last > longest.last) longest = span
    }
  }
  return violations
}

/** A process that has just continued may begin what had come to it before, as long as it does not know of its loss. */
const mayBegin = (stops: ReadonlyArray<Stop>, process: string, at: number): boolean =>
  stops.some((stop) => stop.process === process && at >= stop.to && at <= stop.noticed)

/**
 * Runs of the same handler, singleton or tick that overlap. What a stopped process had begun counts until it was stopped, and what it
 * begins when it continues counts from when it must have noticed.
 */
export const overlappingRuns = (steps: ReadonlyArray<Step>, stops: ReadonlyArray<Stop>): ReadonlyArray<string> => {
  const runs = new Map<string, Span>()
  for (const { at, process, run, what } of steps) {
    const known = runs.get(run)
    if (known === undefined) {
      if (!mayBegin(stops, process, at)) runs.set(run, { what, who: run, process, first: at, last: at })
    } else if (
      !stops.some((stop) => stop.process === process && known.first <= stop.stopped) ||
      !isPardoned(stops, process, at)
    )
      known.last = at
  }
  return overlaps([...runs.values()])
}

/** A runner that says less often what it owns may have lost it in between. */
const longestGapMillis = 600

/** Shards that two runners believed to own at the same time. */
export const doubleOwners = (claims: ReadonlyArray<Claim>, stops: ReadonlyArray<Stop>): ReadonlyArray<string> => {
  const spans: Array<Span> = []
  for (const [process, said] of groupBy(claims, (claim) => claim.process)) {
    let open = new Map<number, Span>()
    let previous: Claim | undefined
    for (const claim of said) {
      if (isPardoned(stops, process, claim.before)) {
        previous = undefined
        continue
      }
      if (previous === undefined || claim.before - previous.before > longestGapMillis) open = new Map()
      const still = new Map<number, Span>()
      for (const shard of claim.shards) {
        let span = open.get(shard)
        if (span === undefined) {
          span = { what: `shard ${shard}`, who: process, process, first: claim.at, last: claim.at }
          spans.push(span)
        } else span.last = Math.max(span.first, claim.before)
        still.set(shard, span)
      }
      open = still
      previous = claim
    }
  }
  return overlaps(spans)
}

/** For how long in all the slowest of the processes got nowhere, besides what a busy machine always costs. */
export const lagMillis = (
  claims: ReadonlyArray<Claim>,
  { from, processes, to }: { readonly from: number; readonly to: number; readonly processes: ReadonlyArray<string> }
): number =>
  Math.max(
    0,
    ...processes.map((process) => {
      const times = claims.filter((claim) => claim.process === process).map(({ before }) => before)
      const within = [from, ...times.filter((at) => at > from && at < to), to]
      return within.slice(1).reduce((sum, at, index) => sum + Math.max(0, at - within[index]! - 300), 0)
    })
  )
