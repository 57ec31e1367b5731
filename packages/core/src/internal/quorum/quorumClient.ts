/**
 * Quorum clients: ordinary clients whose store is a majority of other clients' stores.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { InvalidLockOptions, LockStoreError } from "../../LockError.ts"
import { RedisDriverError } from "../../RedisDriver.ts"
import { clientIn, type LockClient, makeLockClient, type RedisLock } from "../client/LockClient.ts"
import type { LockRef } from "../kinds/kinds.ts"
import type { ClientOptions, QuorumTimes } from "../options/ClientOptions.ts"
import { causeText } from "../report/shown.ts"
import { LockKeys, prefixedLabelKey } from "../store/keys.ts"
import type { Member, MemberClient } from "../store/quorum/QuorumCall.ts"
import { makeQuorumStore } from "../store/quorum/QuorumStore.ts"
import { reconnecting } from "../time/clock.ts"

/** When a member's client closes, the quorum releases its holdings. */
const makeQuorumClient = Effect.fnUntraced(function* (
  members: ReadonlyArray<Member>,
  times: QuorumTimes,
  options: ClientOptions,
  outliving?: LockClient["fork"]
) {
  const store = yield* makeQuorumStore(members, { ...times, ...options }, outliving)
  const client = yield* makeLockClient(store, options, true)
  for (const member of members) member.client.joinedBy.add(client)
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      // also those that have joined since
      for (const member of members) member.client.joinedBy.delete(client)
    })
  )
  return client
})

/** The name of a lock composed of members with these names; if they differ, also its stem: never the name itself, as both are mapped. */
export const combined = (names: ReadonlyArray<string>): { readonly name: string; readonly stem?: string } => {
  const name = names.toSorted().join(", ")
  return names.every((other) => other === names[0]) ? { name: names[0]! } : { name, stem: `{${name}}` }
}

/** One lock of a quorum: a name at a client. */
export type NamedMember = Pick<LockRef, "client" | "name">

/**
 * The client of a quorum of locks. There is one for the same members, in whatever order, and the same times, so that its fibers share one
 * queue and a section may enter again: one for all names that are the same at all members, and one for each set of other names. It lives as
 * long as all its members' clients that were open when it was made, and in the context of the first of these: the caller that is first may be in
 * the section of another lock. Where all are closed, it is one of those.
 */
export const quorumClient = (members: ReadonlyArray<NamedMember>, times: QuorumTimes): LockClient => {
  const first = members.find(({ client }) => !client.isClosing)
  if (first === undefined) return members[0]!.client
  const { context, options } = first.client
  const isShared = members.every(
    ({ client, name }) => name === first.name && client.options.keyPrefix === options.keyPrefix
  )
  const distinct = members.map(({ client, name }) => `${client.clientId} ${isShared ? "" : name}`)
  const identity = JSON.stringify([times, distinct.toSorted()])
  const known = first.client.quorumClients.get(identity)
  if (known !== undefined && !known.isClosing) return known
  let isEnded = false
  const { name, stem } = combined(members.map(({ name }) => name))
  const joint = new LockKeys(name, stem)
  const made = Effect.tap(
    makeQuorumClient(
      members.map(({ client, name }, i) => ({
        label: `member ${i + 1}`,
        lockName: isShared ? undefined : name,
        client,
        keyOf: isShared ? undefined : mapKeys(joint, name, client.options)
      })),
      times,
      isShared ? options : { ...options, keyPrefix: "" },
      first.client.fork
    ),
    (quorum) =>
      Effect.addFinalizer(() => {
        for (const { client } of members) {
          if (client.quorumClients.get(identity) === quorum) client.quorumClients.delete(identity)
        }
        // beside it, and not once it has closed; unless the client of another member has closed, and the first one stays
        return isEnded ? Effect.void : first.client.close
      })
  )
  const scope = Scope.forkUnsafe(Context.get(context, Scope.Scope))
  const client = runNow(Context.add(context, Scope.Scope, scope), made)
  client.end = Effect.suspend(() => {
    isEnded = true
    return Scope.close(scope, Exit.void)
  })
  client.releaseTime = first.client.releaseTime
  for (const member of members) member.client.quorumClients.set(identity, client)
  return client
}

/** `runSync` on the application's own scheduler: the fibers of a client stay on the one that it was made on. */
const runNow = <A, R>(context: Context.Context<R>, effect: Effect.Effect<A, never, R>): A => {
  const fiber = Effect.runForkWith(context)(effect)
  if (fiber.pollUnsafe() === undefined) fiber.currentDispatcher.flush()
  return Effect.runSync(fiber.pollUnsafe()!)
}

/** Maps the keys of the quorum's lock, and of its client, to those at a member. */
const mapKeys = (from: LockKeys, name: string, { keyPrefix }: ClientOptions): Member["keyOf"] => {
  const to = new LockKeys(keyPrefix + name)
  if (from.lock === to.lock && keyPrefix === "") return undefined
  const keys = new Map([
    [from.lock, to.lock],
    [from.token, to.token],
    [from.channel, to.channel],
    [from.readWriteChannel, to.readWriteChannel],
    [from.places, to.places],
    [from.readers, to.readers],
    [from.holdsStem, to.holdsStem]
  ])
  // any other key is a client's label, or a reader's hold
  return (key) => keys.get(key) ?? prefixedLabelKey(keyPrefix, key) ?? to.holdsStem + key.slice(from.holdsStem.length)
}

/** The client of a quorum whose members are built from layers, even while some servers cannot be reached. */
export const joinQuorum = Effect.fnUntraced(function* <E, R>(
  layers: ReadonlyArray<Layer.Layer<RedisLock, E, R>>,
  times: QuorumTimes
) {
  if (!Array.isArray(layers as unknown) || layers.length === 0) {
    const problem = "it needs members: an array of three layers, or five"
    return yield* new InvalidLockOptions({ option: "layerQuorum", problem })
  }
  const scope = yield* Effect.scope
  const building = layers.map((layer) => Effect.map(Layer.buildWithScope(layer, scope), clientIn))
  const built = yield* Effect.forEach(building, Effect.result, { concurrency: "unbounded" })
  const failures = built.filter(Result.isFailure).map(({ failure }) => failure)
  const invalid = failures.find(isInvalidOption)
  if (invalid !== undefined) return yield* Effect.fail(invalid)
  const present = built.filter(Result.isSuccess).map(({ success }) => success)
  if (present.length <= layers.length / 2) return yield* Effect.fail(tooFew(built))
  const [first] = present
  const { keyPrefix } = first!.options
  if (present.some(({ options }) => options.keyPrefix !== keyPrefix)) return yield* otherPrefix()

  const members = built.map((client, i): Member => ({
    label: `member ${i + 1}`,
    client: Result.getOrElse(client, (failure) => absent(failure, first!.store)),
    keyOf: undefined
  }))
  for (const [i, member] of members.entries()) {
    const client = built[i]!
    if (Result.isSuccess(client)) continue
    const told = new Set<string>()
    /** Logs each reason once. */
    const missing = (failure: E) =>
      Effect.suspend(() => {
        const reason = causeText(failure)
        if (told.has(reason)) return Effect.void
        told.add(reason)
        return Effect.logWarning("One server of the quorum cannot be reached yet.", failure)
      })
    const join = building[i]!.pipe(
      Effect.tapError((failure) => (isInvalidOption(failure) ? Effect.void : missing(failure))),
      Effect.retry({ schedule: reconnecting, while: (failure) => !isInvalidOption(failure) }),
      Effect.filterOrFail(({ options }) => options.keyPrefix === keyPrefix, otherPrefix),
      Effect.map((client) => {
        for (const quorum of member.client.joinedBy) client.joinedBy.add(quorum)
        member.client = client
      }),
      Effect.catch((failure) => Effect.logError("One server of the quorum cannot join.", failure))
    )
    const joining = Effect.andThen(missing(client.failure), Effect.forkScoped(join))
    yield* Effect.annotateLogs(joining, { member: member.label })
  }
  return yield* makeQuorumClient(members, times, first!.options)
})

/** An invalid option does not become valid later. */
const isInvalidOption = (failure: unknown): boolean => failure instanceof InvalidLockOptions

const otherPrefix = () =>
  new InvalidLockOptions({ option: "keyPrefix", problem: "it must be the same for all members" })

/** The failure of the first member that is missing, with what is wrong with the others. */
const tooFew = <E>(built: ReadonlyArray<Result.Result<unknown, E>>): E => {
  const missing = built.flatMap((client, i) => (Result.isFailure(client) ? [{ failure: client.failure, i }] : []))
  const texts = missing.flatMap(({ failure, i }) =>
    failure instanceof RedisDriverError ? [`member ${i + 1}: ${causeText(failure.cause)}`] : []
  )
  const { failure } = missing[0]!
  if (missing.length === 1 || texts.length < missing.length || !(failure instanceof RedisDriverError)) return failure
  const problem = `${missing.length} of ${built.length} members of the quorum cannot be reached: ${texts.join("; ")}`
  return new RedisDriverError({ reason: failure.reason, cause: new Error(problem) }) as E & RedisDriverError
}

/** What stands for a member's client until it is connected: it refuses everything, and is otherwise like another member's. */
const absent = (cause: unknown, other: LockClient["store"]): MemberClient => {
  const missing = (operation: string, lock: string) =>
    new LockStoreError({ operation, lock, reason: "NotConnected", cause })
  return {
    store: {
      subscribe: (channel) => Stream.fail(missing("subscribe", channel)),
      scan: (pattern) => Stream.fail(missing("scan", pattern)),
      publish: other.publish,
      slot: (key) => other.slot(key),
      commandLifeMillis: other.commandLifeMillis,
      commandTimeoutMillis: other.commandTimeoutMillis,
      serverMicros: () => undefined,
      longestSince: () => Number.POSITIVE_INFINITY,
      handsOver: false,
      invalidations: Stream.fail(missing("tracking", ""))
    },
    run: ({ keys, operation }) => Effect.fail(missing(operation.name, keys[0]!)),
    hasGivenBack: () => false,
    joinedBy: new Set()
  }
}
