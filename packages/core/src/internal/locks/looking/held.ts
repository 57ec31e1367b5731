/**
 * What is held at this moment, found by the keys that Redis has.
 */
import type * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { LockStoreError } from "../../../LockError.ts"
import type { LockState, NameState } from "../../../LockState.ts"
import type { LockClient } from "../../client/LockClient.ts"
import { inspect } from "../../protocol/inspect.ts"
import { LockKeys, permitIds, permitIdsOf } from "../../store/keys.ts"
import { checkCollision } from "../../store/names.ts"
import { inspectLabelled } from "./inspectLabelled.ts"

/** The names that match a glob pattern, with the client's prefix. */
const prefixed = ({ options }: LockClient, pattern: string): string =>
  options.keyPrefix.replace(/[[\]*?\\^]/g, "\\$&") + pattern

/** The keys of hashes whose names match a glob pattern, perhaps more than once: of locks, for instance. */
export const lockKeysIn = (client: LockClient, pattern: string): Stream.Stream<string, LockStoreError> =>
  client.store.scan(prefixed(client, pattern), "hash")

/** The keys of semaphores with leased permits that are held, perhaps more than once. A quorum keeps none. */
const semaphoreKeysIn = (client: LockClient, pattern: string): Stream.Stream<string, LockStoreError> =>
  client.isQuorum
    ? Stream.empty
    : Stream.fromIterable(permitIdsOf(prefixed(client, pattern))).pipe(
        Stream.flatMap(({ name, pattern }) =>
          Stream.map(client.store.scan(pattern, "zset"), (key) => ({ key, name: name(key) }))
        ),
        Stream.filter(({ key, name }) => permitIds(name) === key && checkCollision(name, name) === undefined),
        Stream.map(({ name }) => name)
      )

/** Everything that Redis has under a key, with the labels of the holders' clients. */
export const stateAt = (client: LockClient, key: string): Effect.Effect<NameState, LockStoreError> =>
  inspectLabelled(client, new LockKeys(key), nameAt(client, key))

const nameAt = ({ options }: LockClient, key: string): string => key.slice(options.keyPrefix.length)

/** The held locks whose names match a glob pattern, each once. */
export const listHeld = (client: LockClient, pattern: string): Stream.Stream<LockState, LockStoreError> =>
  onceEach(lockKeysIn(client, pattern)).pipe(
    Stream.mapEffect((key) => inspect(client, new LockKeys(key), nameAt(client, key)), { concurrency: 16 }),
    Stream.filter((state) => state !== undefined)
  )

/** The same of all kinds, semaphores with leased permits included. */
export const listHeldNames = (client: LockClient, pattern: string): Stream.Stream<NameState, LockStoreError> =>
  onceEach(Stream.concat(lockKeysIn(client, pattern), semaphoreKeysIn(client, pattern))).pipe(
    Stream.mapEffect((key) => stateAt(client, key), { concurrency: 16 }),
    Stream.filter(({ held, holders }) => holders.length > 0 || held > 0)
  )

const onceEach = <E>(keys: Stream.Stream<string, E>): Stream.Stream<string, E> =>
  Stream.suspend(() => {
    const seen = new Set<string>()
    return Stream.filter(keys, (key) => !seen.has(key) && seen.add(key).size > 0)
  })
