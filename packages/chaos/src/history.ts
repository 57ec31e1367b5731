/**
 * The history of a run: what was done to each lock, a line of JSON for each operation, as `checker` reads it and docs/faults.md describes it.
 */
import { writeFileSync } from "node:fs"
import { type Kind, lockOf, permitsOf, type Told } from "./events.ts"

export type Operation =
  /** What a lock is, where it is not held by one at a time. */
  | { readonly op: "lock"; readonly lock: string; readonly permits: number }
  | {
      readonly op: "acquire" | "release" | "write"
      readonly lock: string
      readonly process: number
      /** Which acquisition it is, or belongs to. */
      readonly hold: string
      readonly token?: string | undefined
      /** Of an acquire or a release: whether others may hold it meanwhile whose hold is shared, too. */
      readonly shared?: true | undefined
      /** Of a write: the number of the version that its writer had read, and which it replaces. */
      readonly version?: number | undefined
      /** Of a write: what it adds to a set. */
      readonly element?: string | undefined
      /**
       * Milliseconds on a clock that all processes share. A release is called when its holder last knew that it was inside: where the lock was
       * lost, it has ended somewhen between then and `return`.
       */
      readonly call: number
      /** Absent where nobody knows. */
      readonly return?: number | undefined
      readonly outcome: "ok" | "lost" | "refused" | "unknown"
    }
  /** What was in the set. */
  | {
      readonly op: "read"
      readonly lock: string
      readonly elements: ReadonlyArray<string>
      readonly call: number
      readonly return: number
    }

type Timed = Extract<Operation, { readonly op: "acquire" | "release" | "write" }>

/** One section as it was seen: somebody inside, and how long he had a right to be. */
export interface Section {
  readonly process: number
  readonly fiber: string
  readonly kind: Kind
  readonly owner: string
  readonly token: string | undefined
  readonly asked: number
  readonly entered: number
  /** When it was last found to be held. */
  known: number
  /** Until when it believed to hold the lock. */
  until: number
  /** When it had left, by itself or as its process was killed. */
  left: number | undefined
  /** When it had given the lock back, or knew that it was lost. */
  ended: number | undefined
  outcome: string | undefined
}

/** All sections of a run, by what was told, in the order of time. */
export const sectionsOf = (
  told: ReadonlyArray<Told>,
  killed: ReadonlyMap<number, number> = new Map()
): ReadonlyArray<Section> => {
  const sections: Array<Section> = []
  const open = new Map<string, Section>()
  for (const event of told) {
    if (!("fiber" in event)) continue
    const key = `${event.process}/${event.fiber}`
    const section = open.get(key)
    if (event.event === "enters") {
      const { asked, at, fiber, kind, owner, process, token, until } = event
      const entered: Section = {
        ...{ process, fiber, kind, owner, token, asked, entered: at, known: at, until: until ?? at },
        left: killed.get(process),
        ended: undefined,
        outcome: undefined
      }
      open.set(key, entered)
      sections.push(entered)
    } else if (section !== undefined) {
      if (event.event === "stays" || event.event === "leaves") {
        section.known = event.at
        section.until = Math.max(section.until, event.until ?? event.at)
      }
      if (event.event === "leaves" || event.event === "ended")
        section.left = Math.min(section.left ?? event.at, event.at)
      if (event.event === "ended") {
        section.ended = event.at
        section.outcome = event.outcome
        open.delete(key)
      }
    }
  }
  return sections.sort((a, b) => a.entered - b.entered)
}

/** What was written, as far as anybody knows: a process may have been killed before it heard of it. */
const writesOf = (told: ReadonlyArray<Told>): ReadonlyArray<Timed> => {
  const replies = new Map(told.flatMap((event) => (event.event === "wrote" ? [[event.element, event] as const] : [])))
  return told.flatMap((event): Array<Timed> => {
    if (event.event !== "writes") return []
    const { at, element, kind, owner, process, token, version } = event
    const reply = replies.get(element)
    return [
      {
        ...{ op: "write", lock: lockOf(kind), process, hold: owner, token, version, element, call: at },
        return: reply?.at,
        outcome: reply === undefined ? "unknown" : reply.isRefused ? "refused" : "ok"
      }
    ]
  })
}

/** What was done to the locks. A holder that is stopped, or has lost the lock, does not count as inside after its deadline. */
export const operationsOf = (
  sections: ReadonlyArray<Section>,
  told: ReadonlyArray<Told>,
  kinds: ReadonlyArray<Kind>
): ReadonlyArray<Operation> => [
  ...kinds.map((kind): Operation => ({ op: "lock", lock: lockOf(kind), permits: permitsOf(kind) })),
  ...sections
    .flatMap(({ asked, ended, entered, kind, known, left, outcome, owner, process, token, until }): Array<Timed> => {
      const about = { lock: lockOf(kind), process, hold: owner, token, shared: kind === "reader" || undefined }
      return [
        { op: "acquire", ...about, call: asked, return: entered, outcome: "ok" },
        {
          ...{ op: "release", ...about },
          call: Math.max(known, Math.min(until, left ?? until)),
          return: ended,
          outcome: outcome === "done" ? "ok" : outcome?.startsWith("LockLost") === true ? "lost" : "unknown"
        }
      ]
    })
    .concat(writesOf(told))
    .sort((a, b) => a.call - b.call)
]

export const writeHistory = (file: string, operations: ReadonlyArray<Operation>): void =>
  writeFileSync(file, operations.map((operation) => `${JSON.stringify(operation)}\n`).join(""))
