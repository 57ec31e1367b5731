/**
 * Quorum clients: ordinary clients whose store is a majority of other clients' stores.
 */
import * as Clock from "effect/Clock"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import { type LockClient, makeLockClient } from "../client/LockClient.ts"
import type { ClientOptions, QuorumTimes } from "../options/ClientOptions.ts"
import { report } from "../report/defects.ts"
import { LockKeys, prefixedLabelKey } from "../store/keys.ts"
import type { Member } from "../store/quorum/QuorumCall.ts"
import { QuorumStore } from "../store/quorum/QuorumStore.ts"
import { AlarmClock, monotonicMillis } from "../time/clock.ts"

/** `clients` are those of the connected members: when one of them closes, the quorum releases its holdings. */
export const makeQuorumClient = Effect.fnUntraced(function* (
  clients: ReadonlySet<LockClient>,
  members: ReadonlyArray<Member>,
  times: QuorumTimes,
  options: ClientOptions
) {
  const now = monotonicMillis(yield* Clock.Clock)
  const context = yield* Effect.context<never>()
  const alarms = new AlarmClock(now, (defect) => report(context, defect))
  yield* Effect.forkScoped(alarms.run)
  const fork = yield* FiberSet.makeRuntime<never>()
  const { tokenRetentionMillis, watchdogLeaseMillis } = options
  const settings = { ...times, tokenRetentionMillis, watchdogLeaseMillis }
  const store = new QuorumStore(members, settings, alarms, now, (effect) => void fork(effect))
  const client = yield* makeLockClient(store.service, options, true)
  for (const member of clients) member.joinedBy.add(client)
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      for (const member of clients) member.joinedBy.delete(client)
    })
  )
  return client
})

/** The name of a lock composed of members with these names. */
export const combinedName = (names: ReadonlyArray<string>): string =>
  names.every((name) => name === names[0]) ? names[0]! : names.join(", ")

/** One lock of a quorum: a name at a client. */
export interface NamedMember {
  readonly client: LockClient
  readonly name: string
}

/**
 * The client of a quorum of locks. There is one for the same members and times, so that its fibers share one queue: one for all names that
 * are the same at all members, and one for each set of other names. It lives as long as its first member's client, and in its context: the
 * caller that is first may be in the section of another lock.
 */
export const quorumClient = (members: ReadonlyArray<NamedMember>, times: QuorumTimes): LockClient => {
  const [first] = members as readonly [NamedMember]
  const { context, quorumClients, options } = first.client
  const isShared = members.every(
    ({ client, name }) => name === first.name && client.options.keyPrefix === options.keyPrefix
  )
  const identity = JSON.stringify([times, members.map(({ client, name }) => [client.clientId, isShared ? "" : name])])
  const known = quorumClients.get(identity)
  if (known !== undefined) return known
  const joint = new LockKeys(combinedName(members.map(({ name }) => name)))
  const made = Effect.tap(
    makeQuorumClient(
      new Set(members.map(({ client }) => client)),
      members.map(({ client, name }, i) => ({
        label: `member ${i + 1}`,
        lockName: isShared ? undefined : name,
        store: client.store,
        keyOf: isShared ? undefined : mapKeys(joint, name, client.options)
      })),
      times,
      isShared ? options : { ...options, keyPrefix: "" }
    ),
    // beside it, and not once it has closed
    () => Effect.addFinalizer(() => first.client.close)
  )
  const client = runNow(context, made)
  client.gaveUp = first.client.gaveUp
  quorumClients.set(identity, client)
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
