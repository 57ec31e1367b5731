/**
 * What must hold in a chaos run besides what the checker checks: the order of the fair lock, and that everybody is served. Judged afterwards by
 * what the clients have told.
 */
import { type Kind, lockOf, type Told } from "./events.ts"
import { type Section, sectionsOf } from "./history.ts"

/** What was done to a process, or seen from outside. */
export type Seen =
  | {
      readonly event: "killed" | "stopped" | "continued" | "cutOff" | "reached"
      readonly at: number
      readonly process: number
    }
  /** The proxies of all processes stood still until then. */
  | { readonly event: "stalled"; readonly at: number; readonly since: number }
  /** Who is in the fair lock's queue on the server, the first one first. */
  | { readonly event: "queue"; readonly at: number; readonly owners: ReadonlyArray<string> }

export interface Judgement {
  readonly violations: ReadonlyArray<Violation>
  readonly sections: ReadonlyArray<Section>
  readonly lost: number
  /** Sections that failed otherwise: not acquired, or not released. */
  readonly failed: number
  /** Exceptions that nobody caught. */
  readonly uncaught: number
  /** From the end of the last fault until each fiber was served, milliseconds, the shortest first. */
  readonly served: ReadonlyArray<number>
}

export interface Violation {
  readonly at: number
  readonly kind?: Kind
  readonly what: string
}

export interface Rules {
  /** When the last fault was over, on the clock of the events. */
  readonly calmSince: number
  /** How long after that everybody who waits may wait, milliseconds. */
  readonly patience: number
  /** The client processes that live then, and the fibers of each. */
  readonly living: ReadonlyArray<{ readonly process: number; readonly fibers: ReadonlyArray<string> }>
  /** Whether Redis may have forgotten what it had granted, and its queues. Default: false. */
  readonly isForgetful?: boolean
}

/**
 * How long a fair waiter's process may be silent without losing its place, milliseconds. Documented are 1.5 s, but what was handed over to a process
 * that has not heard of it ends after a quarter of these clients' leases, 0.5 s.
 */
const SILENCE_MILLIS = 400
const COMMAND_MILLIS = 300

const nameOf = ({ fiber, owner, process, token }: Section) =>
  `process ${process}, ${fiber} (owner ${owner}, token ${token})`

interface Stretch {
  readonly from: number
  readonly to: number
}

/** When each process could not say that it lives. */
const disturbances = (
  told: ReadonlyArray<Told>,
  seen: ReadonlyArray<Seen>
): ReadonlyMap<number, ReadonlyArray<Stretch>> => {
  const found = new Map<number, Array<Stretch>>()
  const add = (process: number, stretch: Stretch) => {
    const list = found.get(process)
    if (list === undefined) found.set(process, [stretch])
    else list.push(stretch)
  }
  // of several at once, from the first one's beginning until the last one's end
  const open = new Map<string, { readonly from: number; count: number }>()
  const ends: Record<string, string> = { continued: "stopped", reached: "cutOff" }
  for (const event of seen) {
    if (event.event === "queue" || event.event === "stalled") continue
    const begun = ends[event.event]
    const key = `${event.process} ${begun ?? event.event}`
    const stretch = open.get(key)
    if (begun === undefined) {
      if (stretch === undefined) open.set(key, { from: event.at, count: 1 })
      else stretch.count++
    } else if (stretch !== undefined && --stretch.count === 0) {
      open.delete(key)
      add(event.process, { from: stretch.from, to: event.at })
    }
  }
  for (const [key, { from }] of open) add(Number(key.split(" ")[0]), { from, to: Number.POSITIVE_INFINITY })
  for (const event of told) if (event.event === "stalled") add(event.process, { from: event.since, to: event.at })
  const processes = new Set(told.map(({ process }) => process))
  for (const event of seen) {
    if (event.event === "stalled") for (const process of processes) add(process, { from: event.since, to: event.at })
  }
  return new Map([...found].map(([process, stretches]) => [process, merged(stretches)]))
}

/** One after the other are one, where there was hardly time for a command in between. */
const merged = (stretches: ReadonlyArray<Stretch>): ReadonlyArray<Stretch> => {
  const result: Array<Stretch> = []
  for (const { from, to } of [...stretches].sort((a, b) => a.from - b.from)) {
    const last = result.at(-1)
    if (last === undefined || from > last.to + COMMAND_MILLIS) result.push({ from, to })
    else result[result.length - 1] = { from: last.from, to: Math.max(last.to, to) }
  }
  return result
}

/** The index of the first that is not before that time. */
const firstAfter = (events: ReadonlyArray<{ readonly at: number }>, time: number): number => {
  let from = 0
  let to = events.length
  while (from < to) {
    const middle = (from + to) >> 1
    if (events[middle]!.at < time) from = middle + 1
    else to = middle
  }
  return from
}

const overtaken = function* (
  sections: ReadonlyArray<Section>,
  told: ReadonlyArray<Told>,
  seen: ReadonlyArray<Seen>
): Iterable<Violation> {
  const fair = sections.filter(({ kind }) => kind === "fair")
  const disturbed = disturbances(told, seen)
  const queues = seen.filter((event) => event.event === "queue")
  for (const [i, late] of fair.entries()) {
    let first = firstAfter(queues, late.asked)
    while (first < queues.length && queues[first]!.at < late.entered && !queues[first]!.owners.includes(late.owner))
      first++
    const queued = queues[first]
    if (queued === undefined || queued.at >= late.entered) continue
    const silent = (disturbed.get(late.process) ?? []).some(
      ({ from, to }) => to - from > SILENCE_MILLIS && from < late.entered && to > late.asked
    )
    if (silent) continue
    for (let j = i - 1; j >= 0 && fair[j]!.entered > queued.at; j--) {
      const early = fair[j]!
      if (early.asked <= queued.at || BigInt(early.token ?? 0) >= BigInt(late.token ?? 0)) continue
      yield {
        at: early.entered,
        kind: "fair",
        what:
          `overtaken: ${nameOf(early)} asked ${(early.asked - queued.at).toFixed(1)} ms after ${nameOf(late)} was seen in ` +
          `the queue, and came in before it`
      }
      // one is enough
      break
    }
  }
}

/** How long each fiber that lives waited for its first section after the last fault; undefined where it had none. */
const servedAfter = (sections: ReadonlyArray<Section>, { calmSince, living }: Rules) =>
  living.flatMap(({ fibers, process }) =>
    fibers.map((fiber) => {
      const first = sections.find(
        (section) => section.process === process && section.fiber === fiber && section.entered >= calmSince
      )
      return { process, fiber, millis: first === undefined ? undefined : first.entered - calmSince }
    })
  )

/** The end of a fault, and the process that it concerned: all of them, where there is none. */
export interface Healed {
  readonly fault: string
  readonly at: number
  readonly process?: number
}

/** How long after the end of each fault everybody whom it concerned was inside again, milliseconds, by kind. */
export const recoveriesOf = (
  healed: ReadonlyArray<Healed>,
  sections: ReadonlyArray<Section>
): Readonly<Record<string, ReadonlyArray<number>>> => {
  const recoveries: Record<string, Array<number>> = {}
  for (const { at, fault, process } of healed) {
    const before = new Set(sections.flatMap((section) => (section.entered < at ? [section.process] : [])))
    const next = new Map<number, number>()
    for (const { entered, process } of sections) if (entered >= at && !next.has(process)) next.set(process, entered)
    // of all, those that were there before, and are still
    const concerned = process === undefined ? [...next.keys()].filter((other) => before.has(other)) : [process]
    const waits = concerned.map((process) => (next.get(process) ?? Number.POSITIVE_INFINITY) - at)
    ;(recoveries[fault] ??= []).push(Math.max(0, ...waits))
  }
  return recoveries
}

/** A time in which nobody was inside, and when it was over. */
export interface Gap {
  readonly lock: string
  readonly at: number
  readonly millis: number
}

/**
 * The longest gap of each lock of those that begin between each of these times and the next one; one that began before is counted from the first on.
 * A section counts until its holder last said that it was inside: the time of its release belongs to the gap.
 */
export const gapsOf = (
  sections: ReadonlyArray<Section>,
  kinds: ReadonlyArray<Kind>,
  times: ReadonlyArray<number>
): ReadonlyArray<Gap> => {
  const end = times.at(-1)!
  return times.slice(1).flatMap((to, i) =>
    [...new Set(kinds.map(lockOf))].map((lock) => {
      const of = sections.filter(({ kind }) => lockOf(kind) === lock)
      let free = times[i]!
      let longest: Gap = { lock, at: free, millis: 0 }
      for (const { entered, known } of [...of, { entered: end, known: end }]) {
        if (free >= to) break
        if (entered - free > longest.millis) longest = { lock, at: entered, millis: entered - free }
        free = Math.max(free, known)
      }
      return longest
    })
  )
}

/** Judges a run by what was told and seen, both in the order of time. */
export const judge = (told: ReadonlyArray<Told>, seen: ReadonlyArray<Seen>, rules: Rules): Judgement => {
  const killed = new Map(
    seen.flatMap((event) => (event.event === "killed" ? [[event.process, event.at] as const] : []))
  )
  const sections = sectionsOf(told, killed)
  const broken = told.flatMap((event): ReadonlyArray<Violation> => {
    if (event.event === "broke") return [{ at: event.at, what: `process ${event.process} broke down: ${event.why}` }]
    // a defect has no tag; of other libraries nothing is expected
    return event.event === "ended" && !/^(done$|LockLost: |LockStoreError: |Failed: )/.test(event.outcome)
      ? [{ at: event.at, kind: event.kind, what: `process ${event.process}, ${event.fiber} failed: ${event.outcome}` }]
      : []
  })
  const served = servedAfter(sections, rules)
  const unserved = served.flatMap(({ fiber, millis, process }): ReadonlyArray<Violation> => {
    if (millis !== undefined && millis <= rules.patience) return []
    const how = millis === undefined ? "was never served" : `was served only after ${millis.toFixed(0)} ms`
    const kind = fiber.slice(0, fiber.indexOf("-")) as Kind
    const what = `not served: process ${process}, ${fiber} ${how}, when all faults were over`
    return [{ at: rules.calmSince + rules.patience, kind, what }]
  })
  const outcomes = told.flatMap((event) => (event.event === "ended" ? [event.outcome] : []))
  return {
    violations: [...(rules.isForgetful === true ? [] : overtaken(sections, told, seen)), ...unserved, ...broken].sort(
      (a, b) => a.at - b.at
    ),
    sections,
    lost: outcomes.filter((outcome) => outcome.startsWith("LockLost")).length,
    failed: outcomes.filter((outcome) => /^(LockStoreError|Failed): /.test(outcome)).length,
    uncaught: told.filter(({ event }) => event === "uncaught").length,
    served: served.map(({ millis }) => millis ?? Number.POSITIVE_INFINITY).sort((a, b) => a - b)
  }
}
