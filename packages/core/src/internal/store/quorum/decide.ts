/**
 * What the members' replies to an operation come to, acquiring aside.
 */
import * as Exit from "effect/Exit"
import type { Operation } from "../../../LockStore.ts"
import type { Reply } from "../../../RedisDriver.ts"
import type { Outcomes } from "./QuorumCall.ts"

export type Decision =
  | { readonly _tag: "Decided"; readonly reply: Reply }
  | { readonly _tag: "Undecided"; readonly outcomes: Outcomes }

/** Undefined as long as replies that are still to come may matter. */
export const decide = (
  operation: Operation,
  outcomes: Outcomes,
  required: number,
  isLast: boolean
): Decision | undefined => {
  if (!isLast && waitsForAll.has(operation)) return undefined
  const replies: Array<Reply> = []
  for (const outcome of outcomes) if (outcome !== undefined && Exit.isSuccess(outcome)) replies.push(outcome.value)
  const reply = replies.length < required ? undefined : combine(operation, replies, outcomes.length, required, isLast)
  if (reply !== undefined) return { _tag: "Decided", reply }
  return isLast ? { _tag: "Undecided", outcomes } : undefined
}

/** Over only when every member was seen, or told by somebody who means all of them. */
const waitsForAll: ReadonlySet<Operation> = new Set<Operation>([
  "lock/inspect",
  "lock/found",
  "lock/force_release",
  "read_lock/force_release",
  "write_lock/force_release"
])

const combine = (
  operation: Operation,
  replies: ReadonlyArray<Reply>,
  members: number,
  required: number,
  isLast: boolean
): Reply | undefined => {
  switch (operation) {
    case "lock/inspect":
      return inspected(replies as ReadonlyArray<Inspected>, required)
    case "lock/found":
      return replies.find((reply) => reply !== "none") ?? "none"
    case "lock/renew":
    case "read_lock/renew": {
      const perKey = replies as ReadonlyArray<ReadonlyArray<number>>
      const renewed = perKey[0]!.map((_, i) =>
        confirmed(
          perKey.map((reply) => reply[i]!),
          members,
          required
        )
      )
      return renewed.some((reply) => reply === undefined) && !isLast ? undefined : renewed.map((reply) => reply ?? -1)
    }
    default:
      return confirmed(replies as ReadonlyArray<number>, members, required)
  }
}

/** The reply of a majority that confirms, or of enough that do not; undefined when those who failed could tip the scales. */
const confirmed = (replies: ReadonlyArray<number>, members: number, required: number): number | undefined => {
  let positive = 0
  let highest = 0
  let lowest = 0
  for (const reply of replies) {
    if (reply >= 1) positive++
    highest = Math.max(highest, reply)
    lowest = Math.min(lowest, reply)
  }
  if (positive >= required) return highest
  return members - (replies.length - positive) < required ? lowest : undefined
}

type Inspected = readonly [remaining: number, token: string | null, fields: ReadonlyArray<string>]

/** What a majority agrees on: those that hold on enough members, until enough leases have run out. */
const inspected = (replies: ReadonlyArray<Inspected>, required: number): Inspected => {
  const counts = new Map<string, Array<string>>()
  for (const [, , fields] of replies) {
    for (let i = 0; i < fields.length; i += 2) {
      const values = counts.get(fields[i]!)
      if (values === undefined) counts.set(fields[i]!, [fields[i + 1]!])
      else values.push(fields[i + 1]!)
    }
  }
  const agreed = [...counts].filter(([, values]) => values.length >= required)
  // the last that a majority knows of: one of a minority was not granted
  const tokens = replies.map(([, token]) => Number(token ?? 0)).sort((a, b) => b - a)
  const token = tokens[required - 1] === 0 ? null : String(tokens[required - 1])
  if (agreed.every(([field]) => field === "mode")) return [-2, token, []]
  const remaining = replies.map(([left]) => (left === -1 ? Number.POSITIVE_INFINITY : left)).sort((a, b) => b - a)
  const left = remaining[required - 1]!
  return [
    left === Number.POSITIVE_INFINITY ? -1 : left,
    token,
    agreed.flatMap(([field, values]) => [field, known(values, required)])
  ]
}

/** The value that a majority has, or for a hold count the highest that a majority has reached. */
const known = (values: ReadonlyArray<string>, required: number): string =>
  values.find((value) => values.filter((other) => other === value).length >= required) ??
  values.toSorted((a, b) => Number(b) - Number(a))[required - 1]!
