/**
 * Draws in text what each worker did and when: a row for every worker, a column for every instant.
 */
import { Array } from "effect"

export interface Span {
  readonly worker: number
  readonly from: number
  readonly to: number
  /** One character. If two spans cover the same instant, the later in the list is drawn. */
  readonly mark: string
}

/**
 * A column shows an instant, not a period: two rows have marks in one column only if both workers were there at that
 * instant.
 */
export const timeline = (
  spans: ReadonlyArray<Span>,
  frame: {
    /** The names of the rows. */
    readonly workers: ReadonlyArray<string>
    readonly from: number
    readonly to: number
    readonly width: number
  }
): string => {
  const margin = Math.max(...frame.workers.map((name) => name.length)) + 2
  const columns = frame.width - margin
  const step = (frame.to - frame.from) / columns

  const rows = frame.workers.map((name, index) => {
    const own = spans.filter(({ worker }) => worker === index + 1)
    const cells = Array.makeBy(columns, (column) => {
      const instant = frame.from + (column + 0.5) * step
      return own.findLast(({ from, to }) => from <= instant && instant < to)?.mark ?? " "
    })
    return (name.padEnd(margin) + cells.join("")).trimEnd()
  })
  const scale = " ".repeat(margin) + "0" + duration(frame.to - frame.from).padStart(columns - 1)
  return [...rows, scale].join("\n")
}

export const duration = (millis: number): string =>
  millis < 10
    ? `${millis.toFixed(1)} ms`
    : millis < 1000
      ? `${Math.round(millis)} ms`
      : `${(millis / 1000).toFixed(2)} s`
