/**
 * Losses that the server tells of, long before the next renewal would notice them: a lock that somebody has deleted or overwritten. A lease
 * that somebody has shortened is extended again, before it ends.
 *
 * The server remembers who has read a key by a tracked command, and tells each of them once when it changes. It does not tell a
 * connection of its own writes, which end the tracking as well: so what was renewed is tracked again right behind the renewal. What the
 * server tells of is tracked and then verified, in this order, so that a change is either told or seen.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Signal } from "../../RedisDriver.ts"
import type { LockClient } from "../client/LockClient.ts"
import { sizeOf } from "../kinds/kinds.ts"
import { permitIds } from "../store/keys.ts"
import { track } from "../store/operations/client.ts"
import { runStream, start } from "../store/startable.ts"
import { type Alarm, reconnecting } from "../time/clock.ts"
import type { Lease } from "./Lease.ts"

/** How old a lease is when it is first tracked, so that short sections pay nothing; and how soon after a write of our own it is again. */
const intervalMillis = 1000

/**
 * The shortest pause after a verification, and that for each lease or permit that was verified: the key of readers, or of permits, also
 * changes when others come and go.
 */
const pauseMillis = 50
const pauseMillisEach = 0.25

/** Keys per command: it reads in two milliseconds what ten renewals have written. */
const batchSize = 2000

export class Tracking implements Alarm {
  readonly #client: LockClient
  #server: "unasked" | "asked" | "tells" | "refuses"
  /** The keys that it has told of, and those of several leases that we have written, since the last verification. */
  readonly #changed = new Set<string>()
  #pausesUntil = 0
  due = 0
  heapIndex = -1

  constructor(client: LockClient) {
    this.#client = client
    this.#server = client.store.invalidations === undefined ? "refuses" : "unasked"
  }

  /** A command of ours has granted or changed a lease, or is about to end it. */
  wrote(lease: Lease): void {
    if (this.#server === "refuses") return
    lease.isTracked = false
    // before it tells, nothing is tracked that this could end
    if (this.#server === "tells" && lease.kind.mode !== "exclusive") this.#changed.add(keyOf(lease))
    const { alarms, now } = this.#client
    if (this.heapIndex === -1) alarms.set(this, now() + intervalMillis)
  }

  /** Whatever becomes of it, a command of ours that is sent now ends the tracking of the leases under its keys. */
  writes(keys: ReadonlyArray<string>): void {
    // there is an alarm for as long as there are leases
    if (this.#server !== "tells" || this.heapIndex === -1) return
    for (const key of keys) this.#changed.add(key)
  }

  /** From now on the server tells of the next change of each. */
  track(leases: ReadonlyArray<Lease>): void {
    if (this.#server !== "tells") return
    for (const lease of leases) lease.isTracked = true
    const send = (batch: ReadonlyArray<Lease>) => {
      const keys = [...new Set(batch.map(keyOf))]
      start(this.#client.run(track(keys)), (exit) => {
        if (Exit.isFailure(exit)) for (const lease of batch) lease.isTracked = false
        // deleted between its renewal and this
        else if (exit.value < keys.length) this.#client.watchdog.verify(batch)
      })
    }
    // permits have one key for all
    this.#client.watchdog.inBatches(leases, batchSize, send, () => 1)
  }

  /** Verifies what has changed, and tracks what is old enough. */
  ring(now: number): void {
    const unchanged: Array<Lease> = []
    const mayBeShortened: Array<Lease> = []
    for (const lease of this.#client.watchdog.leases) {
      const hasChanged = this.#changed.has(keyOf(lease))
      if (hasChanged) lease.isTracked = false
      if (lease.isTracked || lease.acquiredAt > now - intervalMillis || lease.unconfirmed !== undefined) continue
      // a reader's by any other reader, also unseen; that of a permit only by somebody who means to
      const { mode } = lease.kind
      ;(mode === "read" || (hasChanged && mode !== "permit") ? mayBeShortened : unchanged).push(lease)
    }
    this.#changed.clear()
    const untracked = [...unchanged, ...mayBeShortened]
    if (untracked.length > 0) {
      this.#pausesUntil =
        now + Math.max(pauseMillis, untracked.reduce((size, lease) => size + sizeOf(lease), 0) * pauseMillisEach)
      if (this.#server === "unasked") this.#listen()
      if (this.#server === "tells") {
        this.track(untracked)
        this.#client.watchdog.verify(unchanged)
        this.#client.watchdog.verifyLength(mayBeShortened)
        // what was extended is tracked no longer
        this.track(mayBeShortened)
      }
    }
    if (this.#client.watchdog.leases.length > 0 && this.#server !== "refuses") {
      this.#client.alarms.set(this, Math.max(now + intervalMillis, this.#pausesUntil))
    }
  }

  #listen(): void {
    this.#server = "asked"
    this.#client.fork(
      runStream(this.#client.store.invalidations!, this.#onSignal).pipe(
        Effect.retry({ while: ({ isTransient }) => isTransient, schedule: reconnecting }),
        Effect.catch((error) =>
          Effect.logInfo(
            "Redis does not report locks that somebody else deletes (CLIENT TRACKING): a holder notices that at its next renewal.",
            error
          )
        ),
        // the servers of a quorum may refuse one by one
        Effect.ensuring(Effect.sync(() => void (this.#server = "refuses")))
      )
    )
  }

  readonly #onSignal = (signal: Signal): void => {
    if (signal._tag === "Message") {
      this.#changed.add(signal.message)
    } else {
      this.#server = "tells"
      for (const lease of this.#client.watchdog.leases) lease.isTracked = false
    }
    const { alarms, now } = this.#client
    alarms.set(this, Math.max(now(), this.#pausesUntil))
  }
}

/** The key whose changes the server tells of. */
const keyOf = ({ keys, kind }: Lease): string => (kind.mode === "permit" ? permitIds(keys.lock) : keys.lock)
