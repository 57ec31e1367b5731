/**
 * Builds the members of a quorum from layers, even while some servers cannot be reached.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import { causeText } from "../report/shown.ts"
import { RedisDriverError } from "../../RedisDriver.ts"
import { InvalidLockOptions, LockStoreError } from "../../LockError.ts"
import { clientIn, type LockClient } from "../client/LockClient.ts"
import type { RedisLock } from "../client/RedisLock.ts"
import { makeQuorumClient } from "./quorumClient.ts"
import type { QuorumTimes } from "../options/ClientOptions.ts"
import { reconnecting } from "../time/clock.ts"
import type { Member } from "../store/quorum/QuorumCall.ts"
import type { Store } from "../store/Store.ts"

export const joinQuorum = Effect.fnUntraced(function* <E, R>(
  layers: ReadonlyArray<Layer.Layer<RedisLock, E, R>>,
  times: QuorumTimes
) {
  if (layers.length === 0) {
    return yield* new InvalidLockOptions({ option: "layerQuorum", problem: "it needs members: three, or five" })
  }
  const scope = yield* Effect.scope
  const clients = yield* Effect.forEach(
    layers,
    (layer) => Effect.result(Effect.map(Layer.buildWithScope(layer, scope), (context) => clientIn(context))),
    { concurrency: "unbounded" }
  )
  const invalid = clients.find((client) => Result.isFailure(client) && isInvalidOption(client.failure))
  if (invalid !== undefined && Result.isFailure(invalid)) return yield* Effect.fail(invalid.failure)
  const present = clients.filter(Result.isSuccess).map(({ success }) => success)
  if (present.length <= layers.length / 2) return yield* Effect.fail(tooFew(clients))
  const first = present[0]!
  const { keyPrefix } = first.options
  if (present.some(({ options }) => options.keyPrefix !== keyPrefix)) return yield* otherPrefix()

  const joined = new Set(present)
  let quorum: LockClient | undefined
  const members = yield* Effect.forEach(clients, (client, i) => {
    const label = `member ${i + 1}`
    const member = (store: Store): Member => ({ label, store, keyOf: undefined })
    if (Result.isSuccess(client)) return Effect.succeed(member(client.success.store))
    const late = member(absent(client.failure, first.store))
    const told = new Set<string>()
    /** Logs each reason once. */
    const missing = (failure: E) =>
      Effect.suspend(() => {
        const reason = causeText(failure)
        if (told.has(reason)) return Effect.void
        told.add(reason)
        return Effect.logWarning("One server of the quorum cannot be reached yet.", failure)
      })
    const join = Layer.buildWithScope(layers[i]!, scope).pipe(
      Effect.tapError((failure) => (isInvalidOption(failure) ? Effect.void : missing(failure))),
      Effect.retry({ schedule: reconnecting, while: (failure) => !isInvalidOption(failure) }),
      Effect.map(clientIn),
      Effect.filterOrFail(({ options }) => options.keyPrefix === keyPrefix, otherPrefix),
      Effect.map((client) => {
        late.store = client.store
        joined.add(client)
        if (quorum !== undefined) client.joinedBy.add(quorum)
      }),
      Effect.catch((failure) => Effect.logError("One server of the quorum cannot join.", failure))
    )
    const joining = Effect.andThen(missing(client.failure), Effect.forkScoped(join))
    return Effect.as(Effect.annotateLogs(joining, { member: label }), late)
  })
  quorum = yield* makeQuorumClient(joined, members, times, first.options)
  return quorum
})

/** An invalid option does not become valid later. */
const isInvalidOption = (failure: unknown): boolean => failure instanceof InvalidLockOptions

const otherPrefix = () =>
  new InvalidLockOptions({ option: "keyPrefix", problem: "it must be the same for all members" })

/** The failure of the first member that is missing, with what is wrong with the others. */
const tooFew = <A, E>(clients: ReadonlyArray<Result.Result<A, E>>): E => {
  const missing = clients.flatMap((client, i) => (Result.isFailure(client) ? [{ failure: client.failure, i }] : []))
  const [first] = missing
  if (missing.length === 1 || !missing.every(({ failure }) => failure instanceof RedisDriverError))
    return first!.failure
  const failures = missing as ReadonlyArray<{ readonly failure: E & RedisDriverError; readonly i: number }>
  const all = failures.map(({ failure, i }) => `member ${i + 1}: ${causeText(failure.cause)}`)
  return new RedisDriverError({
    reason: failures[0]!.failure.reason,
    cause: new Error(
      `${missing.length} of ${clients.length} members of the quorum cannot be reached: ${all.join("; ")}`
    )
  }) as E & RedisDriverError
}

/** The store of a member that is not connected yet: it refuses everything, and is otherwise like that of another member. */
const absent = (cause: unknown, { commandLifeMillis, commandTimeoutMillis, publish, slot }: Store): Store => {
  const missing = (operation: string, lock: string) =>
    new LockStoreError({ operation, lock, reason: "NotConnected", cause })
  return {
    run: ({ keys, operation }) => Effect.fail(missing(operation.name, keys[0]!)),
    subscribe: (channel) => Stream.fail(missing("subscribe", channel)),
    scan: (pattern) => Stream.fail(missing("scan", pattern)),
    publish,
    slot,
    commandLifeMillis,
    commandTimeoutMillis,
    serverMicros: () => undefined,
    longestSince: () => Number.POSITIVE_INFINITY,
    handsOver: false,
    invalidations: Stream.fail(missing("tracking", ""))
  }
}
