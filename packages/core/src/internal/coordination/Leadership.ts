/**
 * A won election: a hold of its lock, and the record beside it.
 */
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import { LockLost, type LockStoreError } from "../../LockError.ts"
import type { Held } from "../acquire/sections.ts"
import type { LockClient } from "../client/LockClient.ts"
import type { Hold } from "../hold/Hold.ts"
import type { LockKeys } from "../store/keys.ts"
import { printsAs } from "../report/printsAs.ts"
import * as record from "../store/operations/record.ts"
import { isRetryable } from "../store/transient.ts"
import { growing } from "../time/schedules.ts"

/** Whether a failure is the loss of the lock of this name. */
export const isLossOf = (name: string, cause: Cause.Cause<unknown>): boolean =>
  cause.reasons.some(
    (reason) => reason._tag === "Fail" && reason.error instanceof LockLost && reason.error.lock === name
  )

/** Short pauses, as the lease ends soon, and others wait for the record. */
const rewriting = growing("50 millis", "1 second")

/** Writes a record as the holder of a lock, retrying transient failures while the lock is held. */
export const writeRecord = (
  client: LockClient,
  hold: Hold,
  use: record.RecordUse,
  { lifeMillis, value, version }: { readonly lifeMillis: number; readonly value: string; readonly version: number }
): Effect.Effect<void, LockLost | LockStoreError> => {
  const { owner, token } = hold
  const written = { owner, token, version, value }
  const command = record.write(hold.lease.keys, use, written, lifeMillis, client.store.publish)
  const attempt = Effect.flatMap(hold.ensureHeld, () =>
    Effect.flatMap(client.store.run(command), (reply): Effect.Effect<void, LockLost> =>
      reply === 1 ? Effect.void : Effect.fail(hold.lease.lose("NotOwner", client.now()))
    )
  )
  return Effect.retry(attempt, {
    while: (error) => error._tag === "LockStoreError" && isRetryable(error),
    schedule: rewriting
  })
}

export class HeldLeadership implements Held {
  readonly name: string
  /** The hold of the election's lock. */
  readonly hold: Hold
  readonly #client: LockClient
  #version = 0

  constructor(client: LockClient, hold: Hold) {
    this.name = hold.name
    this.#client = client
    this.hold = hold
  }

  isOf(client: LockClient, keys: LockKeys): boolean {
    return this.#client === client && this.hold.lease.keys.lock === keys.lock
  }

  get owner(): string {
    return this.hold.owner
  }

  get term(): bigint {
    return this.hold.token
  }

  get isLeading(): Effect.Effect<boolean> {
    return this.hold.isHeld
  }

  get ensureLeading(): Effect.Effect<void, LockLost> {
    return this.hold.ensureHeld
  }

  get awaitLost(): Effect.Effect<never, LockLost> {
    return this.hold.awaitLost
  }

  /** `value` is empty for a leader that proclaims nothing. */
  write(value: string): Effect.Effect<void, LockLost | LockStoreError> {
    return Effect.suspend(() =>
      writeRecord(this.#client, this.hold, "leader", { value, version: ++this.#version, lifeMillis: 0 })
    )
  }

  checkLost(): LockLost | undefined {
    return this.hold.checkLost()
  }

  onLost(listener: () => void): () => void {
    return this.hold.onLost(listener)
  }

  releaseNow(): Effect.Effect<void, LockLost | LockStoreError> {
    return Effect.onExit(this.hold.releaseNow(), () => this.#clear)
  }

  get release(): Effect.Effect<void, LockLost | LockStoreError> {
    return Effect.onExit(this.hold.release, () => this.#clear)
  }

  /** In the background: readers ignore the record of a leader that does not hold the lock. */
  get #clear(): Effect.Effect<void> {
    return Effect.sync(() => {
      if (this.#version === 0) return
      this.#version = 0
      const client = this.#client
      const { store } = client
      client.background(
        Effect.ignore(store.run(record.clear(this.hold.lease.keys, "leader", this.owner, store.publish)))
      )
    })
  }
}

printsAs(HeldLeadership.prototype, ({ name, owner, term }) => ({
  _id: "effect-redis-lock/Leadership",
  name,
  owner,
  term: String(term)
}))
