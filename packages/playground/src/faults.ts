/**
 * What the reader does to the processes and to Redis, and when: part of the address of the page, so that a run can be sent.
 */

export const letters = ["A", "B", "C"] as const

export type Letter = (typeof letters)[number]

export const kinds = ["pause", "resume", "cut", "mend", "kill", "start"] as const

export type Kind = (typeof kinds)[number]

export type Fault =
  | { readonly at: number; readonly kind: Kind; readonly process: Letter }
  | { readonly at: number; readonly kind: "restart" }

/** All that decides a run. */
export interface Run {
  readonly seed: number
  /** In order. */
  readonly faults: ReadonlyArray<Fault>
}

export const defaultSeed = 1

const longestMillis = 24 * 3_600_000

/** As a query: `seed=7&faults=1200-pause-A_5200-resume-A_9000-restart`. */
export const toQuery = ({ faults, seed }: Run): string =>
  new URLSearchParams({
    seed: String(seed),
    ...(faults.length === 0
      ? {}
      : {
          faults: faults
            .map((fault) => [fault.at, fault.kind, ...("process" in fault ? [fault.process] : [])].join("-"))
            .join("_")
        })
  }).toString()

/** Reads a query; what makes no sense in it is left out. */
export const fromQuery = (query: string): Run => {
  const parameters = new URLSearchParams(query)
  const seed = Number(parameters.get("seed") ?? Number.NaN)
  const faults = (parameters.get("faults") ?? "").split("_").flatMap((text): ReadonlyArray<Fault> => {
    const [millis = "", kindText, letterText] = text.split("-")
    const at = Number(millis)
    if (!/^\d+$/.test(millis) || at > longestMillis) return []
    if (kindText === "restart") return [{ at, kind: "restart" }]
    const kind = kinds.find((one) => one === kindText)
    const process = letters.find((one) => one === letterText)
    return kind === undefined || process === undefined ? [] : [{ at, kind, process }]
  })
  return {
    seed: Number.isSafeInteger(seed) && seed >= 0 ? seed : defaultSeed,
    faults: faults.sort((a, b) => a.at - b.at)
  }
}
