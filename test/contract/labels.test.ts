/**
 * The label of a client, as other clients of the same store see it.
 */
import { assert, describe } from "@effect/vitest"
import { Deferred, Duration, Effect, Exit, Layer, Scope } from "effect"
import { FairLock, Lock, LockStore, LockTimeout, ReadWriteLock, RedisLock } from "effect-redis-lock"
import { eventually, soon, until } from "../kit/eventually.ts"
import { failure } from "../kit/exits.ts"
import { freshName } from "../kit/names.ts"
import { enter } from "../kit/sections.ts"
import { clientOf } from "../kit/clients.ts"
import { stores } from "../kit/stores.ts"
import { runOperation } from "../kit/storeOperations.ts"
import { wrappedStore } from "../kit/wrappedStore.ts"
import { testLive, test } from "../kit/test.ts"

const timeout = (exit: Exit.Exit<unknown, unknown>): LockTimeout => {
  const error = failure(exit)
  assert.instanceOf(error, LockTimeout)
  return error
}

/** Clients of one store, and what reached it. */
const clientsOver = Effect.fnUntraced(function* <E>(store: Layer.Layer<LockStore.LockStore, E>) {
  const operations: Array<string> = []
  const context = yield* Layer.build(store)
  const inner = yield* Effect.provideContext(LockStore.LockStore, context)
  const noting = wrappedStore(inner, ({ operation, run }) => {
    operations.push(operation)
    return run()
  })
  const client = (options: RedisLock.RedisLockOptions) =>
    clientOf(RedisLock.layerFromStore(options).pipe(Layer.provide(Layer.succeed(LockStore.LockStore, noting))))
  return { client, operations, inner }
})

for (const [title, store] of Object.entries(stores)) {
  describe(`labels on ${title}`, () => {
    testLive(
      "A timeout names the label of the client that holds the lock, and for how long it has held it",
      function* () {
        const { client } = yield* clientsOver(store)
        const name = freshName()
        const holder = yield* client({ label: "worker-3", keyPrefix: "app:" })
        const section = yield* enter(holder, name)
        const other = yield* client({ label: "worker-4", keyPrefix: "app:" })
        const seen = yield* eventually(
          "the holder has told its label",
          other.run(Lock.inspect(name)),
          ({ holders: [holder] }) => holder?.label !== undefined
        )
        const [{ label, owner, since }] = seen.holders as [(typeof seen.holders)[number]]
        assert.deepStrictEqual([label, owner], ["worker-3", section.holding.owner])
        assert.isAtLeast(Duration.toMillis(since!), 900)
        const error = timeout(yield* Effect.exit(other.run(Lock.withLock(Effect.void, name, { waitTime: "1 second" }))))
        assert.strictEqual(error.holder?.label, "worker-3")
        assert.isAbove(Duration.toMillis(error.holder!.since!), Duration.toMillis(since!))
        assert.match(error.message, /; held by worker-3 \([0-9a-f-]{36}:\d+\) for .+; its lease runs for /)
        yield* section.end
      }
    )

    testLive(
      "inspect lists who waits, the longest first, one of each client, with its label and for how long",
      function* () {
        const { client } = yield* clientsOver(store)
        for (const [lock, fair] of [
          [Lock.make(freshName()), false],
          [FairLock.make(freshName()), true]
        ] as const) {
          const section = yield* enter(yield* client({ label: "holder" }), lock.name)
          for (const [count, label] of ["first", "second"].entries()) {
            const waiter = yield* client({ label })
            yield* Effect.forkScoped(waiter.run(Lock.withLock(Effect.void, lock)))
            yield* eventually(
              `${label} waits`,
              waiter.run(Lock.inspect(lock.name)),
              ({ waiting }) => waiting === count + 1
            )
          }
          const other = yield* client({})
          const { kind, waiters } = yield* eventually(
            "all have told their labels",
            other.run(Lock.inspect(lock.name)),
            ({ waiters }) => waiters.every(({ label }) => label !== undefined)
          )
          assert.strictEqual(kind, fair ? "fair lock" : "lock")
          assert.deepStrictEqual(
            waiters.map(({ label }) => label),
            ["first", "second"]
          )
          const [first, second] = waiters.map(({ since }) => since && Duration.toMillis(since))
          if (fair) assert.isUndefined(first)
          else assert.isAbove(first!, second!)
          yield* section.end
        }
      }
    )

    testLive("A client without a label, and one that is not ours, are named by their owners alone", function* () {
      const { client, inner, operations } = yield* clientsOver(store)
      const name = freshName()
      const holder = yield* client({ label: "" })
      const section = yield* enter(holder, name)
      const other = yield* client({ label: "worker-4" })
      const wait = Effect.exit(other.run(Lock.withLock(Effect.void, name, { waitTime: "1100 millis" })))
      const error = timeout(yield* wait)
      assert.deepStrictEqual(Object.keys(error.holder!).sort(), ["owner", "remaining"])
      yield* section.end
      const foreignOwner = "00000000-0000-0000-0000-000000000000:12"
      yield* runOperation(inner, "lock/acquire", [name, `${name}:token`], [foreignOwner, 60_000, 60_000])
      const foreign = timeout(yield* wait)
      assert.strictEqual(foreign.holder?.owner, foreignOwner)
      assert.isUndefined(foreign.holder?.label)
      // the one that waited has told its own, the other one nothing
      assert.lengthOf(
        operations.filter((operation) => operation === "client/set_label"),
        1
      )
    })

    testLive("Of a reader nobody knows since when it reads, as it has no token of its own", function* () {
      const { client } = yield* clientsOver(store)
      const name = freshName()
      const { readLock, writeLock } = ReadWriteLock.make(name)
      const reader = yield* client({ label: "reader-1" })
      yield* reader.run(Lock.withLock(Effect.void, writeLock))
      const told = yield* Deferred.make<void>()
      yield* Effect.forkScoped(reader.run(Lock.withLock(Deferred.await(told), readLock)))
      const other = yield* client({ label: "reader-2" })
      const { holders } = yield* eventually(
        "the reader has told its label",
        other.run(Lock.inspect(name)),
        ({ holders: [holder] }) => holder?.label === "reader-1"
      )
      assert.isUndefined(holders[0]!.since)
      yield* Deferred.succeed(told, undefined)
    })

    testLive("A lock that its minHold keeps is nobody's", function* () {
      const { client } = yield* clientsOver(store)
      const name = freshName()
      const holder = yield* client({ label: "worker-3" })
      const other = yield* client({ label: "worker-4" })
      const toldLabel = eventually(
        "the holder has told its label",
        other.run(Lock.inspect(name)),
        ({ holders: [holder] }) => holder?.label === "worker-3"
      )
      yield* holder.run(Lock.withLock(toldLabel, name, { minHold: "1 hour" }))
      const { holders } = yield* other.run(Lock.inspect(name))
      assert.match(holders[0]!.owner, /:kept$/)
      assert.isUndefined(holders[0]!.label)
      yield* other.run(Lock.forceRelease(name))
    })

    testLive(
      "A client that is closed takes its label away, whether it holds, waits or has ended its sections",
      function* () {
        const { client, inner } = yield* clientsOver(store)
        const name = freshName()
        const other = yield* client({ label: "" })
        const section = yield* enter(other, name)
        const holding = yield* client({ label: "holds" })
        yield* enter(holding, `${name}:held`)
        const waiting = yield* Scope.make()
        const ended = yield* Scope.make()
        const scopes = [waiting, ended]
        const [waiter, idle] = yield* Effect.forEach(scopes, (scope) =>
          client({ label: "waits" }).pipe(Effect.provideService(Scope.Scope, scope))
        )
        yield* Effect.forkScoped(Effect.exit(waiter!.run(Lock.withLock(Effect.void, name))))
        const last = yield* enter(idle!, `${name}:ended`)
        const labelOf = (own: { readonly run: typeof other.run }) =>
          Effect.flatMap(own.run(Effect.map(RedisLock.RedisLock, ({ clientId }) => clientId)), (id) =>
            runOperation(inner, "client/label", [`effect_redis_lock_client:{${id}}`], [])
          )
        const labels = Effect.forEach([holding, waiter!, idle!], labelOf)
        yield* eventually("all have told their labels", labels, (labels) => labels.every((label) => label !== null))
        yield* last.end
        for (const scope of scopes) yield* Scope.close(scope, Exit.void)
        assert.deepStrictEqual(yield* labels, ["holds", null, null])
        yield* section.end
      }
    )

    testLive("A client closes in time when nobody answers that its label is taken away", function* () {
      const { client, inner, operations } = yield* clientsOver(store)
      const silent = wrappedStore(inner, ({ operation, run }) => {
        operations.push(operation)
        return operation === "client/remove_label" ? Effect.never : run()
      })
      const scope = yield* Scope.make()
      const holder = yield* clientOf(
        RedisLock.layerFromStore({ releaseTimeout: "300 millis" }).pipe(
          Layer.provide(Layer.succeed(LockStore.LockStore, silent))
        )
      ).pipe(Effect.provideService(Scope.Scope, scope))
      const name = freshName()
      yield* enter(holder, name)
      yield* until("it has told its label", () => operations.includes("client/set_label"))
      yield* soon("the client closes", Scope.close(scope, Exit.void))
      assert.lengthOf(
        operations.filter((operation) => operation === "client/remove_label"),
        1
      )
      // the locks do not wait for it
      assert.isFalse(yield* (yield* client({})).run(Lock.isLocked(name)))
    })

    testLive("A timeout does not wait for a label that does not come", function* () {
      const { client, inner } = yield* clientsOver(store)
      const name = freshName()
      const section = yield* enter(yield* client({ label: "worker-3" }), name)
      const silent = wrappedStore(inner, ({ operation, run }) => (operation === "client/label" ? Effect.never : run()))
      const other = yield* clientOf(
        RedisLock.layerFromStore().pipe(Layer.provide(Layer.succeed(LockStore.LockStore, silent)))
      )
      const error = timeout(
        yield* soon("the timeout", Effect.exit(other.run(Lock.withLock(Effect.void, name, { waitTime: "1 second" }))))
      )
      assert.strictEqual(error.holder?.owner, section.holding.owner)
      assert.isUndefined(error.holder?.label)
      yield* section.end
    })
  })
}

test("A client whose user may not read labels is refused once and does not try again", function* () {
  let refused = 0
  const inner = yield* Effect.provide(LockStore.LockStore, yield* Layer.build(LockStore.layerMemory))
  const store = wrappedStore(inner, ({ fail, operation, run }) => {
    if (operation !== "client/label") return run()
    refused++
    return fail("NoPermission")
  })
  const { run } = yield* clientOf(
    RedisLock.layerFromStore().pipe(Layer.provide(Layer.succeed(LockStore.LockStore, store)))
  )
  for (const _ of [1, 2, 3]) {
    const name = freshName()
    yield* runOperation(inner, "lock/acquire", [name, `${name}:token`], [`${crypto.randomUUID()}:1`, 600_000, 1000])
    yield* run(Lock.inspect(name))
  }
  assert.strictEqual(refused, 1)
})
