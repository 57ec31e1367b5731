/**
 * Everything that Redis has under a name: the reply of `lua/lock/look.lua`.
 */
import type { Reply } from "../../../../RedisDriver.ts"

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
  /** Clients with a waiting writer. */
  readonly writers: ReadonlyArray<string>
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
  fields: ReadonlyArray<string>,
  counter: string | null,
  queue: ReadonlyArray<string>,
  queueLength: number,
  readers: ReadonlyArray<string | number>,
  writers: ReadonlyArray<string>,
  permits: ReadonlyArray<string | number>,
  held: number,
  places: ReadonlyArray<string | number>,
  placesTaken: number,
  serverMicros: number
]

export const lookedAtReply = (raw: Reply): LookedAt => {
  const parts = raw as ReadonlyArray<unknown> as Raw
  const [type, remaining, token, fields, counter, queue, queueLength, readers, writers, permits, held, ...rest] = parts
  const [places, placesTaken, serverMicros] = rest
  return {
    type,
    remaining,
    token,
    fields,
    counter,
    queue,
    queueLength,
    readers: inPairs(readers),
    writers,
    permits: inPairs(permits),
    held,
    places: inPairs(places),
    placesTaken,
    serverMicros
  }
}

const inPairs = (flat: ReadonlyArray<string | number>): ReadonlyArray<readonly [string, number]> =>
  Array.from({ length: flat.length / 2 }, (_, i) => [String(flat[2 * i]), Number(flat[2 * i + 1])])
