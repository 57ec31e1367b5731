/**
 * The outcome of a run, in words, numbers and pictures.
 */
import { Array, Cause, Order } from "effect"
import { styleText } from "node:util"
import { type Outcome, workerCount } from "../run.ts"
import { duration, type Span, timeline } from "./timeline.ts"
import type { Deposited } from "../Workers.ts"

// plain text if the output is no terminal, or NO_COLOR is set
const bold = (text: string) => styleText("bold", text)
const green = (text: string) => styleText("green", text)
const red = (text: string) => styleText("red", text)

export const heading = (text: string): string => `\n${bold(text)}\n`

export const balance = ({ balance, deposits, lost }: Outcome): string => {
  const verdict = lost === 0 ? green(bold("0 lost")) : red(bold(`${lost} lost`))
  return `   ${deposits.length} deposits were made, the ledger says ${balance}: ${verdict}.`
}

const sections = ({ deposits }: Outcome): ReadonlyArray<Span> =>
  deposits.map(({ enteredAt, leftAt, worker }) => ({ worker, from: enteredAt, to: leftAt, mark: "█" }))

const waits = ({ deposits }: Outcome): ReadonlyArray<Span> =>
  deposits.map(({ askedAt, enteredAt, worker }) => ({ worker, from: askedAt, to: enteredAt, mark: "·" }))

const picture = (spans: ReadonlyArray<Span>, shown: ReadonlyArray<Deposited>): string =>
  timeline(spans, {
    workers: Array.makeBy(workerCount, (index) => `   worker ${index + 1}`),
    from: Math.min(...shown.map(({ enteredAt }) => enteredAt)),
    to: Math.max(...shown.map(({ leftAt }) => leftAt)),
    width: Math.min(100, process.stdout.columns || 100)
  })

/** A few deposits from the middle. */
const someOf = ({ deposits }: Outcome): ReadonlyArray<Deposited> => {
  const count = 24
  const start = Math.max(0, Math.floor((deposits.length - count) / 2))
  return deposits.slice(start, start + count)
}

export const momentWithoutLock = (outcome: Outcome): string =>
  "   A moment of the run (█ between reading and writing; if two overlap, one is overwritten):\n" +
  picture(sections(outcome), someOf(outcome))

export const momentWithLock = (outcome: Outcome): string =>
  "   A moment of the run (█ holding the lock, · waiting for it; never two at once):\n" +
  picture([...waits(outcome), ...sections(outcome)], someOf(outcome))

export const wholeWithKill = (outcome: Outcome, leaseMillis: number): string => {
  const { deposits, killed } = outcome
  const dead: ReadonlyArray<Span> =
    killed === undefined
      ? []
      : [{ worker: killed.worker, from: killed.enteredAt, to: killed.enteredAt + leaseMillis, mark: "░" }]
  return (
    "   The whole run (█ holding the lock, · waiting for it, ░ dead, its lease running out):\n" +
    picture([...waits(outcome), ...sections(outcome), ...dead], deposits)
  )
}

/** How long the workers waited for the lock. */
export const percentiles = ({ deposits }: Outcome): string => {
  const sorted = Array.sort(
    deposits.map(({ askedAt, enteredAt }) => enteredAt - askedAt),
    Order.Number
  )
  const p = (percent: number) => duration(sorted[Math.ceil((percent / 100) * sorted.length) - 1] ?? 0)
  return `   Waiting for the lock: p50 ${p(50)}, p90 ${p(90)}, p99 ${p(99)}, max ${p(100)}`
}

/** The fencing tokens, in the order in which the lock was granted. */
const tokens = ({ deposits, killed }: Outcome): ReadonlyArray<bigint> => {
  const grants = killed === undefined ? deposits : [...deposits, killed]
  return Array.sortWith(grants, ({ enteredAt }) => enteredAt, Order.Number).map(({ token }) => token ?? 0n)
}

export const areTokensRising = (outcome: Outcome): boolean =>
  tokens(outcome).every((token, index, all) => index === 0 || token > all[index - 1]!)

export const fencing = (outcome: Outcome): string => {
  const all = tokens(outcome)
  const rising = areTokensRising(outcome) ? "strictly rising" : red("NOT rising")
  return `   Fencing tokens: ${all[0]} to ${all.at(-1)}, ${rising} over ${all.length} grants`
}

export const verdict = (millis: number): string =>
  `\n${green(bold("No deposit was lost under the lock."))} (${duration(millis)})`

export const failure = (cause: Cause.Cause<Error>): string => {
  const [reason] = cause.reasons
  const text = reason?._tag === "Fail" ? reason.error.message : Cause.pretty(cause)
  return `\n${styleText("red", text, { stream: process.stderr })}`
}
