/**
 * Asks a store directly, behind the back of all clients.
 */
import { Effect } from "effect"
import { LockStore } from "effect-redis-lock"
import { rawCommand, type Store } from "./wrappedStore.ts"

/** Runs one operation, with the keys and arguments of its file under `lua/`. */
export const runOperation = (
  store: Store,
  operation: LockStore.Operation,
  keys: ReadonlyArray<string>,
  args: ReadonlyArray<string | number> = []
) => store.run(rawCommand(operation, keys, args))

/** The type of a key, as Redis names it; "none" where there is no such key. */
export const typeOfKey = (key: string) => Effect.flatMap(LockStore.LockStore, (store) => typeOfKeyIn(store, key))

/** {@link typeOfKey} in that store. */
export const typeOfKeyIn = (store: Store, key: string) => runOperation(store, "lock/found", [key])

/** How much longer a key stays, milliseconds: -1 for ever, -2 where there is no such key. */
export const lifeOfKeyIn = (store: Store, key: string) =>
  Effect.map(
    runOperation(store, "lock/look", [key, ...Array.from({ length: 5 }, () => `none:${key}`)], [0]),
    (found) => (found as ReadonlyArray<number>)[1]!
  )
