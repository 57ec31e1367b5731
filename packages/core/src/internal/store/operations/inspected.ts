/**
 * What Redis has of a lock, as `lua/lock/inspect.lua` replies, and of a name, as `lua/lock/look.lua` does.
 */
import type { Reply } from "../../../RedisDriver.ts"
import { agreed } from "./StoreOperation.ts"

/** A lock's hash and its token. */
export interface Inspected {
  /** Milliseconds; -1: no expiry, -2: there is no value. */
  readonly remaining: number
  readonly token: string | null
  /** Those of a hash. */
  readonly fields: ReadonlyMap<string, string>
}

export const inspectedReply = (raw: Reply): Inspected => {
  const [remaining, token, fields] = raw as readonly [number, string | null, Flat]
  return { remaining, token, fields: new Map(inPairs(fields, String)) }
}

/** What a majority agrees on: those that hold on enough members, until enough leases have run out. */
export const inspectedByMajority = (replies: ReadonlyArray<Inspected>, required: number): Inspected => {
  const fields = new Map<string, string>()
  for (const field of new Set(replies.flatMap((reply) => [...reply.fields.keys()]))) {
    const values = replies.flatMap((reply) => reply.fields.get(field) ?? [])
    if (values.length >= required) fields.set(field, known(values, required))
  }
  // the last that a majority knows of: one of a minority was not granted
  const last = reached(
    replies.map(({ token }) => Number(token ?? 0)),
    required
  )
  const token = last === 0 ? null : String(last)
  if ([...fields.keys()].every((field) => field === "mode")) return { remaining: -2, token, fields: new Map() }
  const left = reached(
    replies.map(({ remaining }) => (remaining === -1 ? Number.POSITIVE_INFINITY : remaining)),
    required
  )
  return { remaining: left === Number.POSITIVE_INFINITY ? -1 : left, token, fields }
}

/** The value that a majority has, or for a hold count the highest that a majority has reached. */
const known = (values: ReadonlyArray<string>, required: number): string =>
  agreed(values, required) ?? String(reached(values.map(Number), required))

/** The highest number that so many have reached. */
const reached = (numbers: ReadonlyArray<number>, required: number): number =>
  numbers.toSorted((a, b) => b - a)[required - 1]!

/** Everything that Redis has under a name. */
export interface LookedAt extends Inspected {
  /** The type of the value as Redis names it; `none` if there is no value. */
  readonly type: string
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

type Raw = readonly [
  type: string,
  remaining: number,
  token: string | null,
  fields: Flat,
  counter: string | null,
  queue: ReadonlyArray<string>,
  queueLength: number,
  readers: Flat,
  permits: Flat,
  held: number,
  places: Flat,
  placesTaken: number,
  serverMicros: number
]

export const lookedAtReply = (raw: Reply): LookedAt => {
  const [type, remaining, token, fields, counter, queue, queueLength, readers, permits, held, ...rest] =
    raw as unknown as Raw
  const [places, placesTaken, serverMicros] = rest
  return {
    ...inspectedReply([remaining, token, fields]),
    type,
    counter,
    queue,
    queueLength,
    readers: inPairs(readers, Number),
    permits: inPairs(permits, Number),
    held,
    places: inPairs(places, Number),
    placesTaken,
    serverMicros
  }
}

/** What a majority agrees on: the lock alone, as a quorum keeps nothing else. The time is the highest. */
export const lookedAtByMajority = (replies: ReadonlyArray<LookedAt>, required: number): LookedAt => {
  const inspected = inspectedByMajority(replies, required)
  const others = replies.map(({ type }) => type).filter((type) => type !== "hash")
  return {
    ...nothingElse,
    ...inspected,
    type: inspected.remaining === -2 ? (agreed(others, required) ?? "none") : "hash",
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

/** Names, each followed by a value. */
type Flat = ReadonlyArray<string | number>

const inPairs = <A>(flat: Flat, as: (value: string | number) => A): ReadonlyArray<readonly [string, A]> =>
  Array.from({ length: flat.length / 2 }, (_, i) => [String(flat[2 * i]), as(flat[2 * i + 1]!)])
