/**
 * Stores in front of stores: what happens to an operation on its way is up to the test. Every test that stands between a client and
 * its store does so here.
 */
import { Effect, Layer, Stream } from "effect"
import { LockStore, LockStoreError, type RedisDriver, type StoreReason } from "effect-redis-lock"
import { operations } from "./operations.ts"

export type Store = LockStore.LockStore["Service"]

/** What a store answers, or how it fails. */
export type Outcome = Effect.Effect<RedisDriver.Reply, LockStoreError>

/** An operation that a client has asked of its store. */
export interface Request {
  readonly operation: LockStore.Operation
  readonly keys: ReadonlyArray<string>
  readonly args: ReadonlyArray<string | number>
  /** Has the store behind carry it out, as often as it is called. */
  readonly run: () => Outcome
  /** Fails as a store does. Default: `NotConnected`. */
  readonly fail: (reason?: StoreReason, cause?: unknown) => Outcome
}

/** What becomes of a request. */
export type Handler = (request: Request) => Outcome

/** The error of an operation that the store could not carry out. */
export const unreachable = (operation: string, lock: string, reason: StoreReason = "NotConnected", cause?: unknown) =>
  new LockStoreError({ operation, lock, reason, cause })

/** An operation whose answer is the script's reply as it is. */
export const rawCommand = (
  operation: LockStore.Operation,
  keys: ReadonlyArray<string>,
  args: ReadonlyArray<string | number>
): LockStore.StoreCommand<RedisDriver.Reply> => ({
  operation: { ...operations[operation], reply: (raw) => raw } as LockStore.StoreOperation<RedisDriver.Reply>,
  keys,
  args
})

/** A store whose operations go through `handle`; the handler is called where an operation would be started. */
export const wrappedStore = (store: Store, handle: Handler): Store => ({
  ...store,
  run: <A>(command: LockStore.StoreCommand<A>) => {
    const { args, keys, operation } = command
    const { name } = operation
    const answer = handle({
      operation: name,
      keys,
      args,
      run: () => store.run(command) as Effect.Effect<unknown, LockStoreError> as Outcome,
      fail: (reason, cause) => Effect.fail(unreachable(name, keys[0]!, reason, cause))
    })
    // a handler that answers by itself answers as the operation does
    return answer as Effect.Effect<unknown, LockStoreError> as Effect.Effect<A, LockStoreError>
  }
})

/** Puts a change between the clients and the provided store. */
export const changedStore = (
  change: (store: Store) => Store
): Layer.Layer<LockStore.LockStore, never, LockStore.LockStore> =>
  Layer.effect(LockStore.LockStore, Effect.map(LockStore.LockStore, change))

/** The provided store, whose operations go through `handle`. */
export const wrappedStoreLayer = (handle: Handler) => changedStore((store) => wrappedStore(store, handle))

/** Tells the operations that are asked of the provided store. */
export const noting =
  (onRequest: (request: Request) => void): Handler =>
  (request) => {
    onRequest(request)
    return request.run()
  }

/** A store of which no message is heard. */
export const deaf = (store: Store): Store => ({
  ...store,
  subscribe: (channel) => Stream.filter(store.subscribe(channel), ({ _tag }) => _tag === "Subscribed")
})

/** Notes the name of each operation. */
export const recording = (operations: Array<string>) => (store: Store) =>
  wrappedStore(
    store,
    noting(({ operation }) => operations.push(operation))
  )
