import type * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"
import type { LockStoreError } from "../../LockError.ts"
import type { KeyType, Signal } from "../../RedisDriver.ts"
import type { Acknowledgement } from "../options/acquireOptions.ts"
import type { Grant, StoreCommand } from "./operations/StoreOperation.ts"

/** The operations of a store; its service is {@link LockStore.LockStore}. */
export interface Store {
  /**
   * Runs one operation atomically; every operation passes through here. They start in the order of the calls.
   */
  readonly run: <A>(command: StoreCommand<A>) => Effect.Effect<A, LockStoreError>
  /**
   * The signals of a channel; the first is `Subscribed`.
   */
  readonly subscribe: (channel: string) => Stream.Stream<Signal, LockStoreError>
  /**
   * The keys of a type that match a glob pattern; a key may appear twice.
   */
  readonly scan: (pattern: string, type: KeyType) => Stream.Stream<string, LockStoreError>
  /**
   * The command that release operations are to notify with.
   */
  readonly publish: "PUBLISH" | "SPUBLISH"
  /**
   * Keys of the same slot may be used together in one operation.
   */
  readonly slot: (key: string) => number
  /**
   * How long after it was sent an operation may still take effect, milliseconds: one that arrives later is refused.
   */
  readonly commandLifeMillis: number
  /**
   * How long `run` waits for the reply to a command, milliseconds; it may be longer than a command may take effect.
   */
  readonly commandTimeoutMillis: number
  /**
   * The time of the server that keeps a key, microseconds since the epoch, as far as replies have told it: at the latest,
   * since nobody knows how much of a command's time its reply took.
   */
  readonly serverMicros: (key: string) => number | undefined
  /**
   * How long ago the clock of the server that keeps a key showed this time, at the longest, in milliseconds: negative if that is
   * impossible, as the clock was set; infinite while nothing is known.
   */
  readonly longestSince: (key: string, serverMicros: number) => number
  /**
   * Whether its releases can hand a lock over: its scripts know who hears a message.
   */
  readonly handsOver: boolean
  /** The address of its server, for messages; absent if there are several. */
  readonly address?: (() => string | undefined) | undefined
  /** Waits for replicas to acknowledge grants; absent if the store cannot do that. */
  readonly acknowledges?: Acknowledges | undefined
  /** Emits whenever another server may run the commands from now on; absent if the store does not notice. */
  readonly reconnects?: Stream.Stream<void> | undefined
  /**
   * Tells of the keys that tracked commands have read, each once, when somebody else has changed it; `Subscribed` says that anything may
   * have changed. Absent if the store cannot tell.
   */
  readonly invalidations?: Stream.Stream<Signal, LockStoreError> | undefined
}

/** Waits for replicas of the server that keeps a key. */
export interface Acknowledges {
  /** Run before anything is granted: fails if that server cannot be reached, or refuses to wait. */
  readonly prepare: (key: string, wanted: Acknowledgement) => Effect.Effect<void, LockStoreError>
  /** Fails unless the grant has reached the wanted replicas; the caller then undoes it. `lock` is for messages. */
  readonly confirm: (lock: string, grant: Grant, wanted: Acknowledgement) => Effect.Effect<void, LockStoreError>
}
