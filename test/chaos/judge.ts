/**
 * What must hold in a chaos run, whatever the faults: judged afterwards by what the clients have told.
 */
import type { ClientEvent, Kind } from "./events.ts"

/** What a client process has told. A process that takes a killed one's place has a number of its own. */
export type Told = ClientEvent & { readonly process: number }

/** What was done to a process, or seen from outside. */
export type Seen =
  | {
      readonly event: "killed" | "stopped" | "continued" | "cutOff" | "reached"
      readonly at: number
      readonly process: number
    }
  /** Who is in the fair lock's queue on the server, the first one first. */
  | { readonly event: "queue"; readonly at: number; readonly owners: ReadonlyArray<string> }

export interface Judgement {
  readonly violations: ReadonlyArray<Violation>
  readonly sections: number
  readonly lost: number
  /** Sections that failed otherwise: not acquired, or not released. */
  readonly failed: number
  /** From the end of the last fault until the last waiter was served, milliseconds. */
  readonly served: number
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
}

/** One section as it was seen: somebody inside, and how long he had a right to be. */
interface Section {
  readonly process: number
  readonly fiber: string
  readonly kind: Kind
  readonly owner: string
  readonly token: bigint
  readonly asked: number
  readonly entered: number
  /** When it was last found to be held. */
  known: number
  /** Until when it believed to hold the lock. */
  until: number
  ended: number
}

/** How long a fair waiter's process may be silent without losing its place, milliseconds; documented are 1.5 s. */
const SILENCE_MILLIS = 700
const COMMAND_MILLIS = 300

const sectionsOf = (told: ReadonlyArray<Told>, killed: ReadonlyMap<number, number>): ReadonlyArray<Section> => {
  const sections: Array<Section> = []
  const open = new Map<string, Section>()
  for (const event of told) {
    if (!("fiber" in event)) continue
    const key = `${event.process}/${event.fiber}`
    const section = open.get(key)
    if (event.event === "enters") {
      const entered: Section = {
        process: event.process,
        fiber: event.fiber,
        kind: event.kind,
        owner: event.owner,
        token: BigInt(event.token),
        asked: event.asked,
        entered: event.at,
        known: event.at,
        until: event.until,
        ended: killed.get(event.process) ?? Number.POSITIVE_INFINITY
      }
      open.set(key, entered)
      sections.push(entered)
    } else if (section !== undefined) {
      if (event.event === "stays" || event.event === "leaves") {
        section.known = event.at
        section.until = Math.max(section.until, event.until)
      }
      if (event.event === "leaves" || event.event === "ended") {
        section.ended = Math.min(section.ended, event.at)
        if (event.event === "ended") open.delete(key)
      }
    }
  }
  return sections
}

const nameOf = ({ fiber, owner, process, token }: Section) =>
  `process ${process}, ${fiber} (owner ${owner}, token ${token})`

const doubleEntries = function* (sections: ReadonlyArray<Section>): Iterable<Violation> {
  for (const [i, one] of sections.entries()) {
    // who is stopped or lost is not inside after its deadline
    const end = Math.max(one.known, Math.min(one.until, one.ended))
    for (let j = i + 1; j < sections.length; j++) {
      const other = sections[j]!
      if (other.entered > end) break
      if (other.kind !== one.kind) continue
      const overlap = Math.min(end, Math.max(other.known, Math.min(other.until, other.ended))) - other.entered
      yield {
        at: other.entered,
        kind: one.kind,
        what: `double entry: ${nameOf(other)} is in while ${nameOf(one)} is, for ${overlap.toFixed(1)} ms`
      }
    }
  }
}

const staleTokens = function* (sections: ReadonlyArray<Section>): Iterable<Violation> {
  const last = new Map<Kind, Section>()
  for (const section of sections) {
    const before = last.get(section.kind)
    if (before !== undefined && section.token <= before.token) {
      yield {
        at: section.entered,
        kind: section.kind,
        what: `a token that does not rise: ${nameOf(section)} enters after ${nameOf(before)}`
      }
    }
    last.set(section.kind, section)
  }
}

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
    if (event.event === "queue") continue
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
      if (early.asked <= queued.at || early.token >= late.token) continue
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

const unserved = function* (
  sections: ReadonlyArray<Section>,
  { calmSince, living, patience }: Rules
): Iterable<Violation & { readonly served?: number }> {
  for (const { fibers, process } of living) {
    for (const fiber of fibers) {
      const first = sections.find(
        (section) => section.process === process && section.fiber === fiber && section.entered >= calmSince
      )
      const waited = (first?.entered ?? Number.POSITIVE_INFINITY) - calmSince
      if (waited > patience) {
        yield {
          at: calmSince + patience,
          kind: fiber.startsWith("fair") ? "fair" : "plain",
          what: `not served: process ${process}, ${fiber} ${
            first === undefined ? "was never served" : `was served only after ${waited.toFixed(0)} ms`
          }, when all faults were over`
        }
      }
    }
  }
}

/** Judges a run by what was told and seen, both in the order of time. */
export const judge = (told: ReadonlyArray<Told>, seen: ReadonlyArray<Seen>, rules: Rules): Judgement => {
  const killed = new Map(
    seen.flatMap((event) => (event.event === "killed" ? [[event.process, event.at] as const] : []))
  )
  const sections = [...sectionsOf(told, killed)].sort((a, b) => a.entered - b.entered)
  const broken = told.flatMap((event): ReadonlyArray<Violation> => {
    if (event.event === "broke") return [{ at: event.at, what: `process ${event.process} broke down: ${event.why}` }]
    // a defect has no tag
    return event.event === "ended" && !/^(done$|LockLost: |LockStoreError: )/.test(event.outcome)
      ? [{ at: event.at, kind: event.kind, what: `process ${event.process}, ${event.fiber} failed: ${event.outcome}` }]
      : []
  })
  const outcomes = told.flatMap((event) => (event.event === "ended" ? [event.outcome] : []))
  return {
    violations: [
      ...doubleEntries(sections),
      ...staleTokens(sections),
      ...overtaken(sections, told, seen),
      ...unserved(sections, rules),
      ...broken
    ].sort((a, b) => a.at - b.at),
    sections: sections.length,
    lost: outcomes.filter((outcome) => outcome.startsWith("LockLost")).length,
    failed: outcomes.filter((outcome) => outcome.startsWith("LockStoreError")).length,
    served: Math.max(
      0,
      ...rules.living.flatMap(({ fibers, process }) =>
        fibers.map(
          (fiber) =>
            (sections.find((s) => s.process === process && s.fiber === fiber && s.entered >= rules.calmSince)
              ?.entered ?? Number.POSITIVE_INFINITY) - rules.calmSince
        )
      )
    )
  }
}
