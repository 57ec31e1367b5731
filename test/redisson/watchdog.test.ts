/**
 * What Redisson's own tests verify of its renewal, by the numbers of the project's list of behaviours: a watchdog of 4 s for
 * one of 1 s. The server that loses its state is restarted empty.
 */
import { RedisServer } from "@effect-redis-lock/testing"
import { assert, it } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import { Lock, ReadWriteLock, RedisLock } from "effect-redis-lock"
import { type AnyLock, hastyClient, held, onMemory, otherThread, renewed, storeAt } from "./kit.ts"
import { expectWarning } from "../run/logs.ts"
import { freshName } from "../kit/names.ts"
import { until } from "../kit/eventually.ts"

const readLock = (name: string) => ReadWriteLock.make(name).readLock
const writeLock = (name: string) => ReadWriteLock.make(name).writeLock

const onOwnServer =
  <E>(body: (server: RedisServer.RedisServer) => Effect.Effect<void, E, RedisLock.RedisLock | Scope.Scope>) =>
  () =>
    Effect.gen(function* () {
      const server = yield* RedisServer.start()
      yield* Effect.scoped(body(server)).pipe(hastyClient, Effect.provide(storeAt(server.url)))
    }).pipe(Effect.scoped)

/** Waits until the client is connected again. */
const connected = (lock: AnyLock) => until("the client is connected again", Effect.isSuccess(Lock.isLocked(lock)))

const lossAfterRestart = (lock: AnyLock, server: RedisServer.RedisServer) =>
  Effect.gen(function* () {
    const holder = yield* held(lock)
    expectWarning(/^Lost the connection to Redis; connecting again\./)
    yield* server.restart
    yield* Effect.exit(holder.holding.awaitLost)
    assert.strictEqual((yield* Effect.flip(holder.holding.release))._tag, "LockLost")
    yield* holder.letGo
    yield* connected(lock)
  })

/** Held and renewed twice, and still releasable. */
const renewedNormally = (lock: AnyLock) =>
  Effect.gen(function* () {
    const holder = yield* held(lock)
    yield* renewed(lock, 2)
    yield* holder.holding.release
    assert.isFalse(yield* Lock.isLocked(lock))
    yield* holder.letGo
  })

it.live(
  "37. a new acquisition of a plain lock is renewed as usual",
  onOwnServer((server) =>
    Effect.andThen(lossAfterRestart(Lock.make("plain"), server), renewedNormally(Lock.make("plain")))
  )
)
it.live(
  "38. the same of a read lock",
  onOwnServer((server) => Effect.andThen(lossAfterRestart(readLock("rw"), server), renewedNormally(readLock("rw"))))
)
it.live(
  "39. the same of a write lock, and of the acquisition after that",
  onOwnServer((server) =>
    Effect.gen(function* () {
      yield* lossAfterRestart(writeLock("rw"), server)
      yield* renewedNormally(writeLock("rw"))
      yield* renewedNormally(writeLock("rw"))
    })
  )
)

// the watchdog is the client's, and the contract sees it renew every kind on Redis
onMemory("renewal", (it) => {
  it.effect("40. after nested holds of one thread, another thread's hold is renewed for 10 intervals", () =>
    Effect.gen(function* () {
      const lock = Lock.make(freshName("redisson"))
      yield* otherThread(Effect.void.pipe(Lock.withLock(lock), Lock.withLock(lock)))
      const holder = yield* held(lock)
      yield* renewed(lock, 10)
      yield* holder.holding.release
      yield* holder.letGo
    }).pipe(hastyClient)
  )
})
