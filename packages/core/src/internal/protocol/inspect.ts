import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { LockState, NameState } from "../../LockState.ts"
import { LockStoreError } from "../../LockError.ts"
import type { LockKeys } from "../store/keys.ts"
import * as lock from "../store/operations/lock.ts"
import type { LookedAt } from "../store/operations/replies/lookedAt.ts"
import type { ProtocolClient } from "./ProtocolClient.ts"
import type { Mode } from "./LockProtocol.ts"

/** Redisson's owners: a client's UUID and an id. No other field of a hash has this form. */
const ownerField = /^([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}:.+?)(:write)?$/

/**
 * The state in Redis of a lock of any kind, or undefined if the key is free or is no lock.
 */
export const inspect = (
  client: ProtocolClient,
  keys: LockKeys,
  name: string
): Effect.Effect<LockState | undefined, LockStoreError> =>
  Effect.map(client.store.run(lock.inspect(keys)), ([remaining, token, fields]) => {
    const holders = remaining === -2 ? undefined : holdersOf(fields)
    if (holders === undefined) return undefined
    return { name, holders, remaining: durationOf(remaining), token: tokenOf(token) }
  })

/** The holders of a lock by the fields of its hash, or undefined if these are no lock's. */
const holdersOf = (fields: ReadonlyArray<string>): LockState["holders"] | undefined => {
  const holders: Array<LockState["holders"][number]> = []
  const isReadWrite = fields.includes("mode")
  for (let i = 0; i < fields.length; i += 2) {
    if (fields[i] === "mode") continue
    const match = ownerField.exec(fields[i]!)
    const holdCount = Number(fields[i + 1])
    if (match === null || !Number.isSafeInteger(holdCount)) return undefined
    const [, owner, write] = match
    const mode: Mode = !isReadWrite ? "exclusive" : write === undefined ? "read" : "write"
    holders.push({ owner: owner!, holdCount, mode })
  }
  return holders
}

/** Undefined for a key without expiry, and for a permit that never expires. */
const durationOf = (millis: number): Duration.Duration | undefined =>
  millis === -1 ? undefined : Duration.millis(millis)

/** Any other value under the token's key is not a token. */
const tokenOf = (token: string | null): bigint | undefined =>
  token === null || !/^-?\d+$/.test(token) ? undefined : BigInt(token)

/** The most waiters and permits of one name that are listed. */
const mostListed = 1000

/** Everything that Redis has under a name, and when it was that. */
export interface Inspected {
  readonly state: NameState
  /** The time of the server, or the highest of a quorum's, microseconds since the epoch; undefined while it is not known. */
  readonly serverMicros: number | undefined
}

/**
 * Everything that Redis has under a name. Of a quorum, the lock that a majority agrees on.
 */
export const inspectName = (
  client: ProtocolClient & { readonly isQuorum: boolean },
  keys: LockKeys,
  name: string
): Effect.Effect<Inspected, LockStoreError> =>
  client.isQuorum
    ? Effect.map(inspect(client, keys, name), (state) => ({
        state: stateOfQuorum(name, state),
        serverMicros: client.store.serverMicros(keys.lock)
      }))
    : Effect.map(client.store.run(lock.look(keys, mostListed)), (found) => ({
        state: stateOf(name, found),
        serverMicros: found.serverMicros
      }))

const nothing = { holders: [], token: undefined, waiters: [], waiting: 0, count: undefined, permits: [], held: 0 }

const stateOfQuorum = (name: string, state: LockState | undefined): NameState =>
  state === undefined
    ? { ...nothing, name, kind: "none" }
    : {
        ...nothing,
        name,
        kind: state.holders.some(({ mode }) => mode !== "exclusive") ? "read-write lock" : "lock",
        holders: state.holders.map((holder) => ({ ...holder, remaining: state.remaining })),
        token: state.token
      }

type Waiting = Pick<NameState, "waiters" | "waiting">

const queueOf = ({ queue, queueLength }: LookedAt): Waiting => ({
  waiters: queue.map((owner) => ({ owner })),
  waiting: queueLength
})

/** For a read-write lock: without places, as over some stores, Redis knows only of writers. */
const waitingOn = (found: LookedAt): Waiting => {
  const { placesTaken, writers } = found
  if (placesTaken === 0) return { waiters: writers.map((owner) => ({ owner, mode: "write" })), waiting: writers.length }
  const { waiters } = placesOf(found)
  return {
    waiters: waiters.map(({ owner, ...rest }) =>
      owner.endsWith(":write")
        ? { owner: owner.slice(0, -":write".length), mode: "write", ...rest }
        : { owner, mode: "read", ...rest }
    ),
    waiting: placesTaken
  }
}

const placesOf = ({ places, placesTaken }: LookedAt): Waiting => ({
  waiters: places
    .toSorted(([, one], [, other]) => other - one)
    // negative, if the clock was set back
    .map(([owner, micros]) => ({ owner, since: Duration.micros(BigInt(Math.max(0, micros))) })),
  waiting: placesTaken
})

const stateOf = (name: string, found: LookedAt): NameState => {
  const state = { ...nothing, name, token: tokenOf(found.token) }
  const queue = found.queueLength > 0 ? queueOf(found) : placesOf(found)
  const permits = {
    permits: found.permits.map(([id, millis]) => ({ id, remaining: durationOf(millis) })),
    held: found.held
  }
  switch (found.type) {
    case "none":
      if (queue.waiting === 0) return { ...state, kind: "none" }
      return { ...state, kind: found.queueLength > 0 ? "fair lock" : "lock", ...queue }
    case "string":
      if (!/^-?\d+$/.test(found.counter!)) return { ...state, kind: "other" }
      return {
        ...state,
        kind: found.held > 0 ? "permit semaphore" : "counter",
        count: Number(found.counter),
        ...permits
      }
    case "hash": {
      const holders = holdersOf(found.fields)
      if (holders === undefined) return { ...state, kind: "other" }
      const isReadWrite = found.fields.includes("mode")
      const readers = new Map(found.readers)
      return {
        ...state,
        kind: isReadWrite ? "read-write lock" : found.queueLength > 0 ? "fair lock" : "lock",
        holders: holders.map((holder) => ({
          ...holder,
          remaining: durationOf((holder.mode === "read" ? readers.get(holder.owner) : undefined) ?? found.remaining)
        })),
        ...(isReadWrite ? waitingOn(found) : queue)
      }
    }
    default:
      return { ...state, kind: "other" }
  }
}

/**
 * The state in Redis of one side of a lock: its holders in a mode, or undefined if there are none. Fails with `WrongType`
 * if the name is a read-write lock and another kind was expected, or the other way round.
 */
export const inspectSide = (
  client: ProtocolClient,
  keys: LockKeys,
  name: string,
  mode: Mode
): Effect.Effect<LockState | undefined, LockStoreError> =>
  Effect.flatMap(inspect(client, keys, name), (state) => {
    if (state === undefined) return Effect.undefined
    if (state.holders.some((holder) => (holder.mode === "exclusive") !== (mode === "exclusive"))) {
      return Effect.fail(new LockStoreError({ operation: "lock/inspect", lock: name, reason: "WrongType" }))
    }
    const holders = state.holders.filter((holder) => holder.mode === mode)
    return Effect.succeed(holders.length === 0 ? undefined : { ...state, holders })
  })
