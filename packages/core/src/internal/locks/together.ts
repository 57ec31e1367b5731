/**
 * The members of a `MultiLock` that one command acquires: those of one client and slot.
 */
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import type { LockStoreError } from "../../LockError.ts"
import { LockRequest } from "../acquire/acquire.ts"
import { type AcquireRequest, failAsking, grantedTooLate, loseOthers, type Restore } from "../acquire/ask.ts"
import { Hold } from "../hold/Hold.ts"
import { inMicrotask, Lease } from "../hold/Lease.ts"
import { rollback } from "../hold/rollback.ts"
import { ownerRefOf, tokenKey, tokenLife } from "../kinds/kinds.ts"
import { matchOutcome } from "../store/commands.ts"
import * as multiLock from "../store/operations/multiLock.ts"
import { acknowledgedBy } from "../store/operations/StoreOperation.ts"
import type { PreparedAcquire } from "./AnyLock.ts"

/** The most members that one command acquires: while it runs, the server does nothing else. */
const membersPerCommand = 1000

/** Groups the indices of members by the commands that can acquire them. */
export const groupsOf = (
  members: ReadonlyArray<PreparedAcquire>,
  indices: ReadonlyArray<number>
): ReadonlyArray<ReadonlyArray<number>> => {
  const groups = groupedBy(indices, (index) => sharedBy(members[index]!) ?? index)
  return Arr.flatMap(groups, Arr.chunksOf(membersPerCommand))
}

/** What has the same key, together. Not by `Arr.groupBy`: to define its groups as properties takes longer than all else that a request does. */
export const groupedBy = <A>(all: ReadonlyArray<A>, keyOf: (one: A) => unknown): ReadonlyArray<ReadonlyArray<A>> => {
  const groups = new Map<unknown, Array<A>>()
  for (const one of all) {
    const key = keyOf(one)
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [one])
    else group.push(one)
  }
  return [...groups.values()]
}

/**
 * What single locks must share for one command to acquire them: client, slot, and lease, as the command has one for all. Undefined for what
 * it cannot acquire.
 */
const sharedBy = (member: PreparedAcquire): string | undefined => {
  if (!(member instanceof LockRequest) || !member.isJoinable) return undefined
  const { client, keys, leaseMillis } = member
  return `${client.clientId} ${client.store.slot(keys.lock)} ${leaseMillis}`
}

/**
 * Acquires several locks of one client, slot and lease by one command, all or none; replies the index of one that is taken. The caller must hold
 * none of them.
 */
export const tryAcquireTogether = (
  requests: ReadonlyArray<AcquireRequest>,
  restore: Restore
): Effect.Effect<ReadonlyArray<Hold> | number, LockStoreError> => {
  const [first] = requests as readonly [AcquireRequest]
  const { client, leaseMillis } = first
  const owner = client.nextOwner()
  const sentAt = client.now()
  const ownerRefs = () => requests.map((request) => ownerRefOf(request, owner))
  const locks = requests.map(({ keys }) => keys.lock)
  const tokenKeys = requests.map(({ keys, kind }) => tokenKey(kind, keys))
  client.underWay++
  const command = multiLock.acquire(locks, tokenKeys, owner, leaseMillis, tokenLife(client, leaseMillis))
  return matchOutcome(
    restore(client.run(acknowledgedBy(command, first))),
    (reply): Effect.Effect<ReadonlyArray<Hold> | number, LockStoreError> => {
      client.underWay--
      if ("deniedAt" in reply) return Effect.succeed(reply.deniedAt)
      const { tokens } = reply
      const now = client.now()
      const holds: Array<Hold> = []
      for (const [i, request] of requests.entries()) {
        const token = typeof tokens === "number" ? tokens : tokens[i]!
        const lease = Lease.granted(request, { owner, token, sentAt, leaseMillis }, now)
        // it is too late for all of them
        if (lease === undefined) break
        holds.push(client.remember(request, lease.add(new Hold(lease, request)), sentAt))
      }
      const haveDisplaced = holds.filter(loseOthers).length > 0
      if (holds.length > 0) return haveDisplaced ? Effect.as(inMicrotask(client), holds) : Effect.succeed(holds)
      const undone = Effect.forEach(ownerRefs(), (ref) => rollback(ref, leaseMillis), { concurrency: "unbounded" })
      const failure = grantedTooLate(first.name, "multi_lock/acquire", now - sentAt, leaseMillis)
      return Effect.andThen(undone, Effect.fail(failure))
    },
    (cause) => {
      client.underWay--
      return failAsking(ownerRefs(), leaseMillis, cause, restore)
    }
  )
}
