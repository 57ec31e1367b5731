/**
 * Grants that wait for replicas or disks. What they wait on is a connection of its own, which nothing else uses meanwhile: WAIT blocks
 * its connection.
 *
 * WAIT waits for the last write of its own connection. (Up to Redis 7.0 that is whatever the server had written when the connection
 * last ran a command; since 7.2, and in Valkey, it is what that connection itself has written.) So the grants are confirmed over
 * that connection first, which writes one of them again as it is. Confirming also makes sure that this is the server which has them: after
 * a failover another one may answer there, whose replicas would acknowledge anything.
 */
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { InvalidLockOptions, LockNotReplicated, LockStoreError, type StoreReason } from "../../../LockError.ts"
import { type RedisDriver, RedisDriverError, type Reply } from "../../../RedisDriver.ts"
import { type Acknowledgement, wantedOf } from "../../options/acknowledge.ts"
import { confirm } from "../operations/grant.ts"
import type { Grant } from "../operations/StoreOperation.ts"
import { afterRun } from "../outcome.ts"
import { fromCallback, start } from "../startable.ts"
import type { Acknowledges } from "../Store.ts"
import { scripts } from "./scripts.generated.ts"

type Driver = Pick<RedisDriver["Service"], "server" | "slot" | "commandTimeoutMillis"> & {
  readonly sendBlocking: NonNullable<RedisDriver["Service"]["sendBlocking"]>
}

type Replies = ReadonlyArray<Reply | RedisDriverError>

/** What the servers answer over the connection on which grants wait. */
const operation = "grant/confirm"

/** At most this many servers and requirements are remembered: what is forgotten is asked again. */
const maxLanes = 1000

/** One grant that waits. */
interface Pending {
  readonly lock: string
  readonly grant: Grant
  /** Whether it waits once more, because there were more replicas than were known. */
  isAgain: boolean
  readonly settle: (exit: Exit.Exit<void, LockStoreError>) => void
  isCancelled: boolean
}

/** The grants of one server that need the same: those that come while some wait are confirmed together, after them. */
class Lane {
  readonly wanted: Acknowledgement
  isReady = false
  /** Those that wait to hear whether the server can do what is wanted. */
  preparing: Array<Pick<Pending, "lock" | "settle">> = []
  isBusy = false
  /** How many replicas the master last reported as online. */
  online = 0
  pending: Array<Pending> = []

  constructor(wanted: Acknowledgement) {
    this.wanted = wanted
  }

  get counts(): boolean {
    return typeof this.wanted.replicas !== "number"
  }
}

export const acknowledgements = (driver: Driver): Acknowledges => {
  const lanes = new Map<string, Lane>()

  const laneOf = (key: string, wanted: Acknowledgement): Lane => {
    const { fsync, replicas, withinMillis } = wanted
    const id = `${driver.server(key)} ${replicas} ${fsync} ${withinMillis}`
    let lane = lanes.get(id)
    if (lane === undefined) {
      if (lanes.size === maxLanes) lanes.clear()
      lanes.set(id, (lane = new Lane(wanted)))
    }
    return lane
  }

  const send = (key: string, commands: ReadonlyArray<ReadonlyArray<string | number>>, blocksMillis: number) =>
    driver.sendBlocking(key, commands, blocksMillis + driver.commandTimeoutMillis)

  /** Asks the server once for all that come meanwhile. */
  const probe = (lock: string, lane: Lane): void => {
    const asked = lane.wanted.fsync === "none" ? ["WAIT", 0, 1] : ["WAITAOF", 1, 0, 1]
    start(send(lock, lane.counts ? [asked, ["INFO", "replication"]] : [asked], 1), (exit) => {
      const refused = Exit.isSuccess(exit) ? exit.value.find((reply) => reply instanceof RedisDriverError) : undefined
      if (Exit.isSuccess(exit) && refused === undefined) {
        if (lane.counts) lane.online = onlineReplicas(exit.value[1])
        lane.isReady = true
      }
      const { preparing } = lane
      lane.preparing = []
      for (const { lock, settle } of preparing) {
        if (lane.isReady) settle(Exit.void)
        else if (refused !== undefined) settle(Exit.fail(unable(lock, refused)))
        else settle(failed(lock, (exit as Exit.Failure<never, RedisDriverError>).cause, (reason) => reason))
      }
    })
  }

  const prepare: Acknowledges["prepare"] = (lock, wanted) =>
    Effect.suspend(() => {
      const lane = laneOf(lock, wanted)
      if (lane.isReady) return Effect.void
      return fromCallback((settle) => {
        lane.preparing.push({ lock, settle })
        if (lane.preparing.length === 1) probe(lock, lane)
        return { cancel: () => {} }
      })
    })

  /** Confirms all that wait in a lane, and waits for them by one command. */
  const sendAll = (lane: Lane): void => {
    const batch = lane.pending.filter(({ isCancelled }) => !isCancelled)
    lane.pending = []
    lane.isBusy = batch.length > 0
    if (!lane.isBusy) return
    const groups = groupedBySlot(batch, driver.slot)
    const { fsync, replicas, withinMillis } = lane.wanted
    const asked = wantedOf(replicas, lane.online)
    const commands: Array<ReadonlyArray<string | number>> = groups.map((group) => {
      const { args, keys } = confirm(group.map(({ grant }) => grant))
      return ["EVAL", scripts[operation].lua, keys.length, ...keys, ...args]
    })
    if (lane.counts) commands.push(["INFO", "replication"])
    if (fsync === "replicas") commands.push(["WAITAOF", 1, asked, withinMillis])
    else if (asked > 0) commands.push(["WAIT", asked, withinMillis])
    if (fsync === "master") commands.push(["WAITAOF", 1, 0, withinMillis])
    const blocksMillis = (fsync === "master" ? 2 : 1) * withinMillis
    start(send(batch[0]!.lock, commands, blocksMillis), (exit) => {
      lane.isBusy = false
      if (Exit.isSuccess(exit)) settleAll(lane, groups, asked, exit.value)
      else for (const pending of batch) pending.settle(failed(pending.lock, exit.cause, afterRun))
      if (lane.pending.length > 0 && !lane.isBusy) sendAll(lane)
    })
  }

  const settleAll = (
    lane: Lane,
    groups: ReadonlyArray<ReadonlyArray<Pending>>,
    asked: number,
    replies: Replies
  ): void => {
    const { fsync, replicas, withinMillis } = lane.wanted
    const rest = replies.slice(groups.length)
    const info = lane.counts ? rest.shift() : undefined
    const failure = [info, ...rest].find((reply) => reply instanceof RedisDriverError)
    if (lane.counts && failure === undefined) lane.online = onlineReplicas(info)
    const wanted = wantedOf(replicas, lane.online)
    const [first, second] = rest as ReadonlyArray<Reply | undefined>
    // WAITAOF replies with the numbers of disks: the master's own, and those of replicas
    const [local, acknowledged] =
      fsync === "replicas"
        ? (first as readonly [number, number])
        : [
            fsync === "master" ? (((asked > 0 ? second : first) ?? [0]) as ReadonlyArray<number>)[0]! : 1,
            asked > 0 ? (first as number) : 0
          ]
    for (const [i, group] of groups.entries()) {
      const confirmed = replies[i]!
      for (const [j, pending] of group.entries()) {
        const { lock } = pending
        const error = confirmed instanceof RedisDriverError ? confirmed : failure
        if (error !== undefined) {
          pending.settle(Exit.fail(storeError(lock, afterRun(error.reason), error)))
        } else if ((confirmed as ReadonlyArray<number>)[j] !== 1) {
          pending.settle(Exit.fail(notThere(lock)))
        } else if (acknowledged < wanted && asked < wanted && !pending.isAgain) {
          // a replica has come online since they were last counted
          pending.isAgain = true
          lane.pending.push(pending)
        } else if (acknowledged < wanted || local < 1) {
          const cause = new LockNotReplicated({
            lock,
            wanted,
            acknowledged,
            within: Duration.millis(withinMillis),
            ...(acknowledged < wanted ? undefined : { disk: "master" as const })
          })
          pending.settle(Exit.fail(storeError(lock, "NotReplicated", cause)))
        } else {
          pending.settle(Exit.void)
        }
      }
    }
  }

  return {
    prepare,
    confirm: (lock, grant, wanted) =>
      fromCallback((resume) => {
        const lane = laneOf(lock, wanted)
        const pending: Pending = { lock, grant, isAgain: false, settle: resume, isCancelled: false }
        lane.pending.push(pending)
        if (!lane.isBusy) {
          lane.isBusy = true
          // replies that were read together are handed on in one turn
          queueMicrotask(() => sendAll(lane))
        }
        return {
          cancel: () => {
            pending.isCancelled = true
          }
        }
      })
  }
}

/** One command may only use keys of one slot. */
const groupedBySlot = (
  batch: ReadonlyArray<Pending>,
  slot: (key: string) => number
): ReadonlyArray<ReadonlyArray<Pending>> => {
  const groups = new Map<number, Array<Pending>>()
  for (const pending of batch) {
    const of = slot(pending.grant.key)
    const group = groups.get(of)
    if (group === undefined) groups.set(of, [pending])
    else group.push(pending)
  }
  return [...groups.values()]
}

/** A replica that is being synchronised is not online; one that has stopped is, until the master gives it up (repl-timeout). */
const onlineReplicas = (info: Reply | undefined | RedisDriverError): number =>
  String(info).match(/^slave\d+:.*\bstate=online\b/gm)?.length ?? 0

const storeError = (lock: string, reason: StoreReason, cause: unknown): LockStoreError =>
  new LockStoreError({ operation, lock, reason, cause })

const failed = (
  lock: string,
  cause: Cause.Cause<RedisDriverError>,
  reasonFor: (reason: StoreReason) => StoreReason
): Exit.Exit<never, LockStoreError> => {
  const error = Cause.squash(cause)
  const reason = error instanceof RedisDriverError ? error.reason : "ConnectionLost"
  return Exit.fail(storeError(lock, reasonFor(reason), error))
}

const notThere = (lock: string): LockStoreError =>
  storeError(
    lock,
    "ConnectionLost",
    new Error("the server that was to confirm the grant does not have it: another one has taken over meanwhile")
  )

/** Why a server cannot do what is wanted. */
const unable = (lock: string, error: RedisDriverError): LockStoreError => {
  const { message } = error
  const problem = /unknown command/i.test(message)
    ? "the server does not know WAITAOF: that takes Redis 7.2 or newer, or Valkey. Upgrade it, or leave fsync out"
    : /appendonly is disabled/i.test(message)
      ? "the server has no append-only file: set appendonly yes there, or leave fsync out"
      : undefined
  const cause = problem === undefined ? error : new InvalidLockOptions({ option: "acknowledge.fsync", problem })
  return storeError(lock, problem === undefined ? error.reason : "NotReplicated", cause)
}
