/**
 * Grants that wait for replicas, over a connection that nothing else uses meanwhile: WAIT blocks its connection.
 *
 * WAIT waits for the last write of its own connection. (Up to Redis 7.0 that is whatever the server had written when the connection
 * last ran a command; since 7.2, and in Valkey, it is what that connection itself has written.) So the grants are confirmed over
 * that connection first, which writes one of them again as it is. Confirming also makes sure that this is the server which has them: after
 * a failover another one may answer there, whose replicas would acknowledge anything.
 */
import * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { LockNotReplicated, LockStoreError, type StoreReason } from "../../LockError.ts"
import { type RedisDriver, RedisDriverError, type Reply } from "../../RedisDriver.ts"
import { type Acknowledgement, wantedOf } from "../options/acquireOptions.ts"
import { confirm, type Grant } from "./operations/StoreOperation.ts"
import { fromCallback, start } from "./startable.ts"
import type { Acknowledges } from "./Store.ts"

type Driver = Pick<RedisDriver["Service"], "server" | "slot" | "commandTimeoutMillis"> & {
  readonly sendBlocking: NonNullable<RedisDriver["Service"]["sendBlocking"]>
}

/** At most this many servers and requirements are remembered: what is forgotten is asked again. */
const maxLanes = 1000

/** How grants wait for the replicas of a driver's servers. */
export const acknowledgements = (
  driver: Driver,
  /** Told of every grant that was not acknowledged, and of every failure to ask. */
  onFailure?: (reason: StoreReason) => void
): Acknowledges => {
  const lanes = new Map<string, Lane>()
  const laneOf = (key: string, wanted: Acknowledgement): Lane => {
    const id = `${driver.server(key)} ${wanted.replicas} ${wanted.withinMillis}`
    let lane = lanes.get(id)
    if (lane === undefined) {
      if (lanes.size === maxLanes) lanes.clear()
      lanes.set(id, (lane = new Lane(driver, wanted, onFailure)))
    }
    return lane
  }
  return {
    prepare: (lock, wanted) => Effect.suspend(() => laneOf(lock, wanted).prepare(lock)),
    confirm: (lock, grant, wanted) => Effect.suspend(() => laneOf(lock, wanted).confirm(lock, grant))
  }
}

type Settle = (exit: Exit.Exit<void, LockStoreError>) => void

/** One grant that waits. */
interface Pending {
  readonly lock: string
  readonly grant: Grant
  readonly settle: Settle
  /** Whether it waits once more, because there were more replicas than were known. */
  isAgain: boolean
  isCancelled: boolean
}

/** The grants of one server that need the same: those that come while some wait are confirmed together, after them. */
class Lane {
  readonly #driver: Driver
  readonly #wanted: Acknowledgement
  readonly #onFailure: ((reason: StoreReason) => void) | undefined
  /** How many replicas the master last reported as online. */
  #online = 0
  /** Whether the server has been reached. */
  #isReady = false
  #preparing: Array<{ readonly lock: string; readonly settle: Settle }> = []
  #isBusy = false
  #pending: Array<Pending> = []

  constructor(driver: Driver, wanted: Acknowledgement, onFailure: ((reason: StoreReason) => void) | undefined) {
    this.#driver = driver
    this.#onFailure = onFailure
    this.#wanted = wanted
  }

  /** Asks the server, once for all that come meanwhile: nothing is acquired where a grant could not wait. */
  prepare(lock: string): Effect.Effect<void, LockStoreError> {
    if (this.#isReady) return Effect.void
    return fromCallback((settle) => {
      this.#preparing.push({ lock, settle })
      if (this.#preparing.length === 1) this.#probe(lock)
      return { cancel: () => {} }
    })
  }

  #probe(lock: string): void {
    this.#send(lock, [["WAIT", 0, 1]], 1, (exit) => {
      const failure = Exit.isFailure(exit)
        ? errorOf(exit.cause)
        : exit.value.find((reply) => reply instanceof RedisDriverError)
      this.#isReady = failure === undefined
      for (const { lock, settle } of this.#preparing.splice(0)) {
        settle(failure === undefined ? Exit.void : this.#failure(lock, failure.reason, failure))
      }
    })
  }

  confirm(lock: string, grant: Grant): Effect.Effect<void, LockStoreError> {
    return fromCallback((settle) => {
      const pending: Pending = { lock, grant, settle, isAgain: false, isCancelled: false }
      this.#pending.push(pending)
      if (!this.#isBusy) {
        this.#isBusy = true
        // replies that were read together are handed on in one turn
        queueMicrotask(() => this.#confirmAll())
      }
      return {
        cancel: () => {
          pending.isCancelled = true
        }
      }
    })
  }

  /** Confirms all that are pending, and waits for them by one command. */
  #confirmAll(): void {
    const batch = this.#pending.filter(({ isCancelled }) => !isCancelled)
    this.#pending = []
    this.#isBusy = batch.length > 0
    if (!this.#isBusy) return
    // one command may only use keys of one slot
    const groups = Object.values(Arr.groupBy(batch, ({ grant }) => String(this.#driver.slot(grant.key))))
    const commands = groups.map((group): ReadonlyArray<string | number> => {
      const { args, keys, operation } = confirm(group.map(({ grant }) => grant))
      return ["EVAL", operation.script.lua, keys.length, ...keys, ...args]
    })
    const { replicas, withinMillis } = this.#wanted
    const asked = wantedOf(replicas, this.#online)
    this.#send(batch[0]!.lock, [...commands, ["WAIT", asked, withinMillis]], withinMillis, (exit) => {
      // first, as a driver may reply what cannot be read
      this.#isBusy = false
      if (Exit.isSuccess(exit)) {
        this.#settleAll(groups, asked, exit.value)
      } else {
        const error = errorOf(exit.cause)
        for (const { lock, settle } of batch) settle(this.#failure(lock, error.reason, error, true))
      }
      if (!this.#isBusy) this.#confirmAll()
    })
  }

  #settleAll(groups: ReadonlyArray<ReadonlyArray<Pending>>, asked: number, replies: Replies): void {
    const { replicas, withinMillis } = this.#wanted
    const acknowledged = Number(replies.at(-1)!)
    const failure = replies.slice(groups.length).find((reply) => reply instanceof RedisDriverError)
    const wanted = wantedOf(replicas, this.#online)
    for (const [i, group] of groups.entries()) {
      const confirmed = replies[i]!
      const error = confirmed instanceof RedisDriverError ? confirmed : failure
      for (const [j, pending] of group.entries()) {
        const { lock, settle } = pending
        if (error !== undefined) {
          settle(this.#failure(lock, error.reason, error, true))
        } else if ((confirmed as ReadonlyArray<number>)[j] !== 1) {
          const problem =
            "the server that was to confirm the grant does not have it, or not for long enough: another one has taken over meanwhile, or it took too long"
          settle(this.#failure(lock, "ConnectionLost", new Error(problem)))
        } else if (acknowledged >= wanted) {
          settle(Exit.void)
        } else if (asked < wanted && !pending.isAgain) {
          // a replica has come online since they were last counted
          pending.isAgain = true
          this.#pending.push(pending)
        } else {
          const within = Duration.millis(withinMillis)
          settle(this.#failure(lock, "NotReplicated", new LockNotReplicated({ lock, wanted, acknowledged, within })))
        }
      }
    }
  }

  /** `isGranted`: whether the lock may have been granted, whatever the reason. */
  #failure(lock: string, reason: StoreReason, cause: unknown, isGranted?: true): Exit.Exit<never, LockStoreError> {
    this.#onFailure?.(reason)
    return Exit.fail(new LockStoreError({ operation: "grant/confirm", lock, reason, mayHaveRun: isGranted, cause }))
  }

  /** Sends commands together, of which the last one blocks; the replicas are counted right before it, if that matters. */
  #send(
    key: string,
    commands: ReadonlyArray<ReadonlyArray<string | number>>,
    blocksMillis: number,
    onExit: (exit: Exit.Exit<Replies, RedisDriverError>) => void
  ): void {
    const { commandTimeoutMillis, sendBlocking } = this.#driver
    const counts = typeof this.#wanted.replicas !== "number"
    const all = counts ? commands.toSpliced(-1, 0, ["INFO", "replication"]) : commands
    start(sendBlocking(key, all, blocksMillis + commandTimeoutMillis), (exit) => {
      const info = counts && Exit.isSuccess(exit) ? exit.value.at(-2) : undefined
      if (typeof info === "string") this.#online = info.match(onlineReplica)?.length ?? 0
      onExit(exit)
    })
  }
}

type Replies = ReadonlyArray<Reply | RedisDriverError>

/** A replica that is being synchronised is not online; one that has stopped is, until the master gives it up (repl-timeout). */
const onlineReplica = /^slave\d+:.*\bstate=online\b/gm

const errorOf = (cause: Cause.Cause<RedisDriverError>): RedisDriverError => {
  const error = Cause.squash(cause)
  return error instanceof RedisDriverError ? error : new RedisDriverError({ reason: "ConnectionLost", cause: error })
}
