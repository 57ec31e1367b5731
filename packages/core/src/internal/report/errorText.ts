/**
 * The texts of errors: what happened, and what to do about it.
 */
import type * as Duration from "effect/Duration"
import { causeJson, seconds } from "./shown.ts"
import { storeReasons } from "./storeReasons.ts"

/**
 * An error for logs in JSON: its fields and its message, which JSON otherwise leaves out. It is not an encoding: to send an
 * error somewhere, encode it with its schema.
 */
export const errorJson = (error: Error): Record<string, unknown> => {
  const fields: Record<string, unknown> = { ...error, message: error.message }
  if (error.cause !== undefined) fields["cause"] = causeJson(error.cause)
  return fields
}

/** How a lock can be lost. */
export const lossReasons = ["Expired", "NotOwner", "RenewalFailed", "HeldTooLong", "ClientClosed", "Released"] as const

/** How a lock was lost, and what to do about it; `renewal` says why the last renewal failed. */
export const lossText = (
  { reason, stalled }: { readonly reason: (typeof lossReasons)[number]; readonly stalled?: boolean | undefined },
  renewal: string
): string => {
  switch (reason) {
    case "Expired":
      return stalled === true
        ? "its lease ran out while the process was stopped or blocked"
        : "its lease ran out before it was released. Renew it (leave out leaseTime), or choose a longer lease"
    case "NotOwner":
      return "Redis no longer has it under this owner: it was force-released, deleted, evicted, or Redis lost its data"
    case "RenewalFailed":
      return `it was not renewed before its lease ran out: ${renewal}`
    case "HeldTooLong":
      return "it was held for its maxHold. Find out why its section takes so long, or choose a longer maxHold"
    case "ClientClosed":
      return "its client was closed while it was held, and released it"
    case "Released":
      return "its own holder has released it"
  }
}

interface MemberFailure {
  readonly member: string
  readonly reason: keyof typeof storeReasons
  readonly message: string
}

/** The failures of a quorum's members, grouped by reason; without repeating a text. */
export const memberFailuresText = (all: ReadonlyArray<MemberFailure>): string => {
  const reasons = new Map<MemberFailure["reason"], Map<string, Array<string>>>()
  for (const { member, message, reason } of all) {
    const texts = reasons.get(reason) ?? new Map<string, Array<string>>()
    reasons.set(reason, texts.set(message, [...(texts.get(message) ?? []), member]))
  }
  const failures = [...reasons].map(([reason, texts]) => {
    const members = [...texts].map(([message, members]) => `${members.join(", ")} (${message})`)
    return ` ${members.join(", ")}: ${storeReasons[reason]}.`
  })
  return failures.join("")
}

interface Permits {
  readonly wanted: number
  readonly available: number | undefined
  readonly exists?: boolean | undefined
}

/** The message of a wait in which a semaphore did not have enough permits. */
export const noPermitsText = (semaphore: string, waited: string, { available, exists, wanted }: Permits): string =>
  exists === false
    ? `Semaphore "${semaphore}" did not exist within ${waited}. ` +
      `Create it with trySetPermits, or give make the number of its permits.`
    : `Semaphore "${semaphore}" did not have ${wanted} free permit${wanted === 1 ? "" : "s"} within ${waited}` +
      (available === undefined ? "." : `; it had ${available}.`)

interface NotReplicated {
  readonly lock: string
  readonly wanted: number
  readonly acknowledged: number
  readonly within: Duration.Duration
}

/** What a grant lacked, and what to do about it. */
export const notReplicatedText = ({ acknowledged, lock, wanted, within }: NotReplicated): string =>
  `Lock "${lock}" was granted, but only ${acknowledged} of the ${wanted} replica${wanted === 1 ? "" : "s"} that it needs ` +
  `acknowledged it within ${seconds(within)}, so the grant was undone. Look at the replicas (INFO replication on the master), ` +
  `give them more time (acknowledge.within), or ask for fewer.`
