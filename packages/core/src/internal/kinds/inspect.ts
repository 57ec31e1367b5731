/**
 * A look at what Redis has under a name: who holds it, who waits, and by which labels people recognise them.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { LockStoreError } from "../../LockError.ts"
import type { HolderState, LockState, WaiterState } from "../../LockState.ts"
import type { LockClient } from "../client/LockClient.ts"
import { describeWrongType } from "../store/failures.ts"
import { clientLabelKey, type LockKeys } from "../store/keys.ts"
import { label } from "../store/operations/client.ts"
import { type LookedAt, nothingElse } from "../store/operations/inspected.ts"
import { kept } from "../report/shown.ts"
import * as lock from "../store/operations/lock.ts"
import { leastTime, type LockRef, type Mode } from "./kinds.ts"

/** The most waiters and permits of one name that are listed. */
const mostListed = 1000

/**
 * The state of a name, and for how long its exclusive holder or writer has held it, if the time of the server is known. A client
 * without a label may be Redisson's, whose grants leave an older token as it is: the time counts only together with a label.
 */
interface Look {
  readonly state: LockState
  readonly since: Duration.Duration | undefined
}

const lookAt = (name: string, found: Found): Look => {
  const state = stateOf(name, found)
  // readers have no token of their own
  const isRead = state.holders.some(({ mode }) => mode === "read")
  return { state, since: isRead ? undefined : sinceGrant(state.token, found.serverMicros) }
}

/**
 * Who holds a lock, without its waiters: needs no permissions for the keys of other kinds. Fails with `WrongType` if what lies there is not
 * a hash.
 */
export const lookAtHolders = (
  { run, store }: LockClient,
  keys: LockKeys,
  name: string
): Effect.Effect<Look, LockStoreError> =>
  Effect.map(run(lock.inspect(keys)), (found) =>
    lookAt(name, {
      ...nothingElse,
      ...found,
      type: found.remaining === -2 ? "none" : "hash",
      serverMicros: store.serverMicros(keys.lock)
    })
  )

/** Everything that Redis has under a name, of whatever kind, with the labels of its holders and waiters. */
export const inspect = (client: LockClient, keys: LockKeys, name: string): Effect.Effect<LockState, LockStoreError> =>
  Effect.flatMap(client.run(lock.look(keys, mostListed)), (found) => withLabels(client, lookAt(name, found)))

/**
 * The holders of a lock, or of one side of a read-write lock. Fails with `WrongType` if the name is a read-write lock and another kind was
 * expected, or the other way round.
 */
export const holdersIn = ({
  client,
  keys,
  kind: { mode, title },
  name
}: LockRef): Effect.Effect<ReadonlyArray<HolderState>, LockStoreError> => {
  const found = Effect.flatMap(lookAtHolders(client, keys, name), ({ state: { holders } }) =>
    holders.some((holder) => (holder.mode === "exclusive") !== (mode === "exclusive"))
      ? Effect.fail(new LockStoreError({ operation: "lock/inspect", lock: name, reason: "WrongType" }))
      : Effect.succeed(holders.filter((holder) => holder.mode === mode))
  )
  return Effect.catchCause(found, (cause) => describeWrongType(client, [{ expected: title, key: keys.lock }], cause))
}

type Found = Omit<LookedAt, "serverMicros"> & { readonly serverMicros: number | undefined }

/** The state of a name under which nothing is known. */
export const nothingUnder = (name: string): LockState => ({
  name,
  kind: "other",
  holders: [],
  token: undefined,
  waiters: [],
  waiting: 0,
  count: undefined,
  permits: [],
  held: 0
})

const stateOf = (name: string, found: Found): LockState => {
  const { counter, fields, held, queueLength, remaining, type } = found
  const state = { ...nothingUnder(name), token: tokenOf(found.token) }
  const plainKind = queueLength > 0 ? "fair lock" : "lock"
  switch (type) {
    case "none": {
      const queue = queueOf(found)
      return { ...state, kind: queue.waiting === 0 ? "none" : plainKind, ...queue }
    }
    case "string": {
      if (!/^-?\d+$/.test(counter!)) return state
      const permits = found.permits.map(([id, millis]) => ({ id, remaining: durationOf(millis) }))
      return { ...state, kind: held > 0 ? "permit semaphore" : "counter", count: Number(counter), permits, held }
    }
    case "hash": {
      const owners = holdersOf(fields)
      if (owners === undefined) return state
      const readers = new Map(found.readers)
      const holders = owners.map((holder) => ({
        ...holder,
        remaining: durationOf((holder.mode === "read" ? readers.get(holder.owner) : undefined) ?? remaining)
      }))
      return fields.has("mode")
        ? { ...state, kind: "read-write lock", holders, ...sidesOf(found) }
        : { ...state, kind: plainKind, holders, ...queueOf(found) }
    }
    default:
      return state
  }
}

/** Redisson's owners: a client's UUID and an id. No other field of a hash has this form. */
const ownerField = /^([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}:.+?)(:write)?$/

/** The holders of a lock by the fields of its hash, or undefined if these are no lock's. */
const holdersOf = (fields: ReadonlyMap<string, string>): ReadonlyArray<Omit<HolderState, "remaining">> | undefined => {
  const holders: Array<Omit<HolderState, "remaining">> = []
  const isReadWrite = fields.has("mode")
  for (const [field, value] of fields) {
    if (field === "mode") continue
    const match = ownerField.exec(field)
    const holdCount = Number(value)
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

type Waiting = Pick<LockState, "waiters" | "waiting">

/** The queue of a fair lock, or else the places of any other lock. */
const queueOf = (found: Found): Waiting =>
  found.queueLength > 0
    ? { waiters: found.queue.map((owner) => ({ owner })), waiting: found.queueLength }
    : placesOf(found)

const placesOf = ({ places, placesTaken }: Found): Waiting => ({
  waiters: places
    .toSorted(([, one], [, other]) => other - one)
    // negative, if the clock was set back
    .map(([owner, micros]) => ({ owner, since: Duration.micros(BigInt(Math.max(0, micros))) })),
  waiting: placesTaken
})

/** The places on both sides of a read-write lock. */
const sidesOf = (found: Found): Waiting => {
  const { waiters, waiting } = placesOf(found)
  const sided = waiters.map(({ owner, ...rest }): WaiterState =>
    owner.endsWith(":write")
      ? { owner: owner.slice(0, -":write".length), mode: "write", ...rest }
      : { owner, mode: "read", ...rest }
  )
  return { waiters: sided, waiting }
}

/** The time from the grant of this token to this time of the server, in microseconds; undefined where either is not known. */
const sinceGrant = (token: bigint | undefined, now: number | undefined): Duration.Duration | undefined => {
  if (token === undefined || now === undefined || token < leastTime) return undefined
  const micros = now - Number(token)
  return micros < 0 ? undefined : Duration.micros(BigInt(Math.floor(micros)))
}

/** The label of an owner's client; undefined for a lock that its minHold keeps, as nobody holds it. */
export const labelOf = ({ labels }: LockClient, owner: string): Effect.Effect<string | undefined> =>
  owner.endsWith(kept) ? Effect.undefined : labels.of(owner)

/** The most waiters whose labels are looked up: each is a command, unless it is known. */
const mostLabelled = 100

const withLabels = (client: LockClient, { since, state }: Look): Effect.Effect<LockState> => {
  const labelled = <A extends HolderState | WaiterState>(one: A, others?: Partial<A>): Effect.Effect<A> =>
    Effect.map(labelOf(client, one.owner), (label) => (label === undefined ? one : { ...one, label, ...others }))
  const held = since === undefined ? undefined : { since }
  return Effect.zipWith(
    Effect.forEach(state.holders, (holder) => labelled(holder, held), { concurrency: 16 }),
    Effect.forEach(state.waiters, (waiter, i) => (i < mostLabelled ? labelled(waiter) : Effect.succeed(waiter)), {
      concurrency: 16
    }),
    (holders, waiters) => ({ ...state, holders, waiters })
  )
}

const knownMillis = 60_000
/** A client stores its label a second after it was first granted something. */
const unknownMillis = 2000
const mostRemembered = 1000

/** Owners are `<client>:<number>`, as in Redisson; a waiting writer without a place is known by its client alone. */
const clientOf = (owner: string): string | undefined =>
  /^([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})(?::|$)/.exec(owner)?.[1]

/**
 * The labels of other clients, by which people recognise the process of an owner. Remembered for a while, so that a look at many locks
 * asks once for each client.
 */
export class LabelsOfOthers {
  readonly #client: LockClient
  readonly #remembered = new Map<string, { readonly label: string | undefined; readonly until: number }>()
  #isRefused = false

  constructor(client: LockClient) {
    this.#client = client
  }

  /** The label of an owner's client; undefined if it has stored none, or Redis does not answer. */
  of(owner: string): Effect.Effect<string | undefined> {
    return Effect.suspend(() => {
      const { clientId, now, options, run } = this.#client
      const other = clientOf(owner)
      if (other === undefined) return Effect.undefined
      if (other === clientId) return Effect.succeed(options.label === "" ? undefined : options.label)
      const remembered = this.#remembered.get(other)
      if (remembered !== undefined && remembered.until > now()) return Effect.succeed(remembered.label)
      if (this.#isRefused) return Effect.undefined
      return Effect.match(run(label(clientLabelKey(options.keyPrefix, other))), {
        onSuccess: (label) =>
          label === "" ? this.#remember(other, undefined, unknownMillis) : this.#remember(other, label, knownMillis),
        onFailure: ({ isTransient, reason }) => {
          // it would be refused again, and the server logs each attempt
          if (reason === "NoPermission") this.#isRefused = true
          return this.#remember(other, undefined, isTransient ? unknownMillis : knownMillis)
        }
      })
    })
  }

  #remember(client: string, label: string | undefined, millis: number): string | undefined {
    this.#remembered.delete(client)
    this.#remembered.set(client, { label, until: this.#client.now() + millis })
    if (this.#remembered.size > mostRemembered) {
      const [oldest] = this.#remembered.keys()
      this.#remembered.delete(oldest!)
    }
    return label
  }
}
