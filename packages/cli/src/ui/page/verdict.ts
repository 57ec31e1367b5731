/**
 * What keeps others out of a lock, and whether that will end, in two sentences.
 */
import { span } from "../../span.ts"
import { isKept } from "../../visible.ts"
import { el } from "./elements.ts"
import { age, holdOf, isEnding, nameOf } from "./shownHolder.ts"
import type { Hold, LockTold, Waiter } from "./connection/wire.ts"

/** So many holds say how long one usually lasts. */
const usualHolds = 3

/** A hold that lasts so many times as long as any before is unusual. */
const unusualTimes = 2

type Level = "good" | "warn" | "bad" | "unknown"

/** Nothing of what has neither holders nor waiters, as a semaphore. */
export const verdict = (told: LockTold): ReadonlyArray<HTMLElement> => {
  const { holders, waiters } = told.state
  if (holders.length === 0 && waiters.length === 0) return []
  const [level, who, rest] = holders.length === 0 ? whenFree : whenHeld(told)
  return [
    el(
      "section",
      { class: "card verdict", "data-level": level, "aria-label": "Summary" },
      el("p", {}, el("strong", {}, who), rest),
      el("p", {}, waitersText(told.state.waiting, waiters))
    )
  ]
}

const whenFree = [
  "warn",
  "It is free",
  ", although somebody waits: a waiter that lives acquires it within seconds."
] as const

const whenHeld = (told: LockTold): readonly [Level, string, string] => {
  const { holds, lease, now, renewedAt, state } = told
  const end = ({ remainingMillis }: { remainingMillis: number | null }) => remainingMillis ?? Number.POSITIVE_INFINITY
  // of several readers the one that keeps it longest
  const holder = state.holders.reduce((a, b) => (end(b) > end(a) ? b : a))
  const { owner, remainingMillis: left } = holder
  const name = nameOf(holder)
  if (isKept(owner))
    return ["good", `${name} has released it`, `, and its minHold keeps it for ${span(left ?? 0)} more.`]
  const hold = holdOf(holds, holder)
  const who = hold === undefined ? `${name} holds it` : `${name} has held it for ${age(hold.since, hold.isOlder, now)}`
  const [level, rest] = leaseText({ left, lease, renewed: renewedAt[owner], now })
  const others = state.holders.length - 1
  const beside = others === 0 ? "" : `, beside ${others} other${others === 1 ? "" : "s"}`
  const unusual = level === "good" && hold !== undefined ? unusualText(holds, now - hold.since) : ""
  return [unusual === "" ? level : "warn", who, beside + rest + unusual]
}

interface LeaseSeen {
  readonly left: number | null
  readonly lease: number
  /** When it was last seen renewed. */
  readonly renewed: number | undefined
  readonly now: number
}

const leaseText = ({ lease, left, now, renewed }: LeaseSeen): readonly [Level, string] => {
  if (left === null)
    return ["bad", ". Its lease never ends: if its process has died, the lock stays held until somebody frees it."]
  if (isEnding(left, lease)) {
    return [
      "warn",
      `. It does not renew its lease, which ends in ${span(left)}: it has a fixed leaseTime, hangs, or has died.`
    ]
  }
  return renewed === undefined
    ? ["unknown", `. Its lease ends in ${span(left)} unless it is renewed.`]
    : ["good", `. It renews its lease (last ${span(Math.max(0, now - renewed))} ago), so its process is alive.`]
}

const unusualText = (holds: ReadonlyArray<Hold>, length: number): string => {
  const ended = holds.flatMap(({ since, until }) => (until === null ? [] : [until - since]))
  const longest = Math.max(...ended)
  return ended.length >= usualHolds && length > longest * unusualTimes
    ? ` None of its last ${ended.length} holds took longer than ${span(longest)}.`
    : ""
}

const waitersText = (waiting: number, waiters: ReadonlyArray<Waiter>): string => {
  if (waiting === 0) return "No waiters are known."
  const known = waiters.filter(({ waitedMillis }) => waitedMillis !== null)
  if (known.length === 0) return waiting === 1 ? "1 waiter." : `${waiting} waiters.`
  const longest = known.reduce((a, b) => (b.waitedMillis! > a.waitedMillis! ? b : a))
  const who = `${nameOf(longest)}, for ${age(0, longest.isOlder === true, longest.waitedMillis!)}`
  return waiting === 1 ? `1 waiter: ${who}.` : `${waiting} waiters, the longest: ${who}.`
}
