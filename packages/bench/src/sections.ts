import type { Section } from "./Performer.ts"

/** The sections of several processes, in the order in which they were entered. */
export interface SectionOf extends Section {
  readonly process: number
}

export const inOrder = (reports: ReadonlyArray<ReadonlyArray<Section>>): ReadonlyArray<SectionOf> =>
  reports
    .flatMap((sections, process) => sections.map((section) => ({ ...section, process })))
    .sort((a, b) => a.enteredAt - b.enteredAt)

/** Fails if a section began before the previous one was over. */
export const expectExclusive = (sections: ReadonlyArray<Section>): void => {
  for (let i = 1; i < sections.length; i++) {
    const overlap = sections[i - 1]!.leftAt - sections[i]!.enteredAt
    if (overlap > 0) throw new Error(`two workers under one lock for ${overlap.toFixed(3)} ms`)
  }
}

/** Fails if a writer was not alone, or more than `most` were inside at once. */
export const expectAtMost = (sections: ReadonlyArray<Section>, most: number): void => {
  const inside = new Set<Section>()
  for (const section of sections) {
    for (const other of inside) if (other.leftAt <= section.enteredAt) inside.delete(other)
    inside.add(section)
    if (inside.size > most) throw new Error(`${inside.size} workers inside at once`)
    if (inside.size > 1 && [...inside].some(({ kind }) => kind === "write")) throw new Error("a writer was not alone")
  }
}

/** From the first request to the end of the last section. */
export const wallMillis = (sections: ReadonlyArray<Section>): number => {
  let first = Infinity
  let last = -Infinity
  for (const { askedAt, leftAt } of sections) {
    first = Math.min(first, askedAt)
    last = Math.max(last, leftAt)
  }
  return last - first
}

/** How long the longest wait for a section was, and how many times the mean. */
export const waitsOf = (
  sections: ReadonlyArray<Section>
): { readonly longestWaitMillis: number; readonly longestToMean: number } => {
  const waits = sections.map(({ askedAt, enteredAt }) => enteredAt - askedAt)
  const longestWaitMillis = Math.max(...waits)
  const mean = waits.reduce((sum, wait) => sum + wait, 0) / waits.length
  return { longestWaitMillis, longestToMean: longestWaitMillis / mean }
}

/** Each section that followed one of another process, behind that one. */
export const changesOfProcess = (
  sections: ReadonlyArray<SectionOf>
): ReadonlyArray<readonly [before: SectionOf, after: SectionOf]> =>
  sections.flatMap((after, i) => {
    const before = sections[i - 1]
    return before === undefined || before.process === after.process ? [] : [[before, after] as const]
  })

/** How long each hand-off to another process took. Only a worker that was waiting when the lock became free was handed it. */
export const crossHandOffMillis = (sections: ReadonlyArray<SectionOf>): Float64Array =>
  Float64Array.from(
    changesOfProcess(sections).filter(([before, after]) => after.askedAt < before.leftAt),
    ([before, after]) => after.enteredAt - before.leftAt
  )

/**
 * How many workers entered before one that had asked earlier by more than `marginMillis`, so that their requests cannot
 * have overtaken each other on the way to the server.
 */
export const inversions = (sections: ReadonlyArray<Section>, marginMillis: number): number => {
  let overtaking = 0
  // from the last to the first: the earliest request of those that entered later
  let earliestAsked = Infinity
  for (let i = sections.length - 1; i >= 0; i--) {
    const { askedAt } = sections[i]!
    if (earliestAsked + marginMillis < askedAt) overtaking++
    earliestAsked = Math.min(earliestAsked, askedAt)
  }
  return overtaking
}
