/**
 * Asks a store directly, behind the back of all clients.
 */
import { Deferred, Effect, type Scope, Stream } from "effect"
import { LockStore, type LockStoreError } from "effect-redis-lock"
import { freshName } from "./names.ts"
import { rawCommand, type Store } from "./wrappedStore.ts"

/** Runs one operation, with the keys and arguments of its file under `lua/`. */
export const runOperation = (
  store: Pick<Store, "run">,
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

/** The owners that have a place under this key. */
export const placesIn = (store: Store, key: string) =>
  Effect.map(
    runOperation(store, "lock/look", [...Array.from({ length: 5 }, () => `none:${key}`), key], [100]),
    (found) => (found as ReadonlyArray<ReadonlyArray<unknown>>)[10]!.filter((_, i) => i % 2 === 0)
  )

/** An id of a client, as the stores tell it from those of Java. */
export const clientId = (letter: string): string => `${letter.repeat(8)}-0000-4000-8000-000000000000`

/** Whether an acquisition was answered by a grant, and not by what is known of the holder. */
export const isGranted = (reply: unknown): boolean => !Array.isArray(reply) || reply[0] === "granted"

/** The token of a grant. */
export const tokenIn = (reply: unknown): number => Number(Array.isArray(reply) ? reply[1] : reply)

interface Listening {
  /** What has come so far. */
  readonly heard: Array<string>
  /** The first that comes. */
  readonly message: Effect.Effect<string>
  /** Whether nothing was published so far. */
  readonly isSilent: Effect.Effect<boolean, LockStoreError>
}

/** Listens to a channel until the test ends, and tells what comes. */
export const listenTo = Effect.fnUntraced(function* (
  store: Store,
  channel: string
): Effect.fn.Return<Listening, never, Scope.Scope> {
  const isListening = Deferred.makeUnsafe<void>()
  const first = Deferred.makeUnsafe<string>()
  const heard: Array<string> = []
  yield* Effect.forkScoped(
    Stream.runForEach(store.subscribe(channel), (signal) =>
      Effect.sync(() => {
        if (signal._tag === "Subscribed") return Deferred.doneUnsafe(isListening, Effect.void)
        heard.push(signal.message)
        return Deferred.doneUnsafe(first, Effect.succeed(signal.message))
      })
    )
  )
  yield* Deferred.await(isListening)
  return {
    heard,
    message: Deferred.await(first),
    isSilent: Effect.map(allHeard(store), () => heard.length === 0)
  }
})

/** Waits until what was published so far has been heard by all that listen through this store: its messages come in order. */
export const allHeard = (store: Store): Effect.Effect<void, LockStoreError> =>
  Effect.scoped(
    Effect.gen(function* () {
      const name = freshName("heard")
      const { message } = yield* listenTo(store, `channel:{${name}}`)
      yield* runOperation(store, "lock/acquire", [name, `token:{${name}}`], ["marker", 1000, 1000])
      yield* runOperation(store, "lock/release", [name, `channel:{${name}}`], ["marker", store.publish])
      yield* message
    })
  )
