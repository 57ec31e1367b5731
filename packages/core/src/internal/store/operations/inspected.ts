/**
 * What Redis has of a lock, as `lua/lock/inspect.lua` replies, and of a name, as `lua/lock/look.lua` does.
 */
import type { Reply } from "../../../RedisDriver.ts"
import { agreed, listReply } from "./StoreOperation.ts"

export type Inspected = readonly [remaining: number, token: string | null, fields: ReadonlyArray<string>]

/** What a majority agrees on: those that hold on enough members, until enough leases have run out. */
export const inspectedByMajority = (replies: ReadonlyArray<Inspected>, required: number): Inspected => {
  const values = new Map<string, ReadonlyArray<string>>()
  for (const [, , fields] of replies) {
    for (let i = 0; i < fields.length; i += 2) {
      values.set(fields[i]!, [...(values.get(fields[i]!) ?? []), fields[i + 1]!])
    }
  }
  const held = [...values].filter(([, values]) => values.length >= required)
  // the last that a majority knows of: one of a minority was not granted
  const tokens = replies.map(([, token]) => Number(token ?? 0))
  const last = reached(tokens, required)
  const token = last === 0 ? null : String(last)
  if (held.every(([field]) => field === "mode")) return [-2, token, []]
  const remaining = replies.map(([left]) => (left === -1 ? Number.POSITIVE_INFINITY : left))
  const left = reached(remaining, required)
  return [
    left === Number.POSITIVE_INFINITY ? -1 : left,
    token,
    held.flatMap(([field, values]) => [field, known(values, required)])
  ]
}

/** The value that a majority has, or for a hold count the highest that a majority has reached. */
const known = (values: ReadonlyArray<string>, required: number): string =>
  agreed(values, required) ?? reached(values, required)

/** The highest number that a majority has reached. */
const reached = <A extends string | number>(values: ReadonlyArray<A>, required: number): A =>
  values.toSorted((a, b) => Number(b) - Number(a))[required - 1]!

/** Everything that Redis has under a name. */
export interface LookedAt {
  /** The type of the value as Redis names it; `none` if there is no value. */
  readonly type: string
  /** Milliseconds; -1: no expiry, -2: there is no value. */
  readonly remaining: number
  readonly token: string | null
  /** The fields of a hash and their values in turn. */
  readonly fields: ReadonlyArray<string>
  readonly counter: string | null
  /** The owners in the queue of a fair lock, the first ones if there are many. */
  readonly queue: ReadonlyArray<string>
  readonly queueLength: number
  /** Known readers, with the milliseconds until the last of their holds ends. */
  readonly readers: ReadonlyArray<readonly [owner: string, millis: number]>
  /** Leased permits, with the milliseconds that are left; the first ones if there are many. */
  readonly permits: ReadonlyArray<readonly [id: string, millis: number]>
  readonly held: number
  /** Owners among which a release hands the lock over, with the microseconds since they took their places. */
  readonly places: ReadonlyArray<readonly [owner: string, micros: number]>
  readonly placesTaken: number
  /** The time of the server, microseconds since the epoch. */
  readonly serverMicros: number
}

type Paired = "readers" | "permits" | "places"

/** What the script replies, pair after pair. */
type Raw = Omit<LookedAt, Paired> & Readonly<Record<Paired, ReadonlyArray<string | number>>>

/** In the order of the script's reply. */
const parts: ReadonlyArray<keyof LookedAt> = [
  "type",
  "remaining",
  "token",
  "fields",
  "counter",
  "queue",
  "queueLength",
  "readers",
  "permits",
  "held",
  "places",
  "placesTaken",
  "serverMicros"
]

export const lookedAtReply = (raw: Reply): LookedAt => {
  const found = Object.fromEntries(listReply(raw).map((part, i) => [parts[i]!, part])) as unknown as Raw
  const { permits, places, readers } = found
  return { ...found, readers: inPairs(readers), permits: inPairs(permits), places: inPairs(places) }
}

/** What a majority agrees on: the lock alone, as a quorum keeps nothing else. The time is the highest. */
export const lookedAtByMajority = (replies: ReadonlyArray<LookedAt>, required: number): LookedAt => {
  const inspected = replies.map(({ fields, remaining, token }): Inspected => [remaining, token, fields])
  const [remaining, token, fields] = inspectedByMajority(inspected, required)
  const others = replies.map(({ type }) => type).filter((type) => type !== "hash")
  return {
    ...nothingElse,
    type: remaining === -2 ? (agreed(others, required) ?? "none") : "hash",
    remaining,
    token,
    fields,
    serverMicros: Math.max(...replies.map(({ serverMicros }) => serverMicros))
  }
}

/** Nothing besides a lock's hash and its token. */
export const nothingElse = {
  counter: null,
  queue: [],
  queueLength: 0,
  readers: [],
  permits: [],
  held: 0,
  places: [],
  placesTaken: 0
} as const

const inPairs = (flat: ReadonlyArray<string | number>): ReadonlyArray<readonly [string, number]> =>
  Array.from({ length: flat.length / 2 }, (_, i) => [String(flat[2 * i]), Number(flat[2 * i + 1])])
