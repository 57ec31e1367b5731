/**
 * Semaphores that are not what the program says: there is none, or it has another number of permits.
 */
import { assert, it } from "@effect/vitest"
import { Effect, Layer, Logger } from "effect"
import { type LockStore, type LockTimeout, PermitSemaphore, RedisLock, Semaphore } from "effect-redis-lock"
import { stores } from "../kit/stores.ts"
import { freshName } from "../kit/names.ts"
import { testsOf } from "../kit/test.ts"

for (const [title, store] of Object.entries(stores)) {
  it.layer(store, { excludeTestServices: true })(`semaphores on ${title}`, (it) => {
    const client = RedisLock.layerFromStore()
    const test = testsOf<LockStore.LockStore | RedisLock.RedisLock>((title, self, timeout) =>
      it.effect(title, (context) => Effect.provide(Effect.scoped(self(context)), Layer.fresh(client)), timeout)
    )

    test("A wait for permits of a semaphore that was never created says that there is none", function* () {
      const name = freshName("totals")
      for (const waitTime of [0, 20]) {
        for (const use of [
          Semaphore.withPermits(Effect.void, name, 1, { waitTime }),
          PermitSemaphore.withPermits(Effect.void, name, 1, { waitTime })
        ]) {
          const error = (yield* Effect.flip(use)) as LockTimeout
          assert.strictEqual(error._tag, "LockTimeout")
          assert.strictEqual(error.permits?.exists, false)
          assert.include(error.message, `Semaphore "${name}" did not exist${waitTime === 0 ? "." : " within"}`)
          assert.notInclude(error.message, "it had 0")
        }
      }
      yield* Semaphore.trySetPermits(name, 1)
      yield* Semaphore.acquire(name, 1)
      const error = (yield* Effect.flip(Semaphore.acquire(name, 1, { waitTime: 0 }))) as LockTimeout
      assert.deepStrictEqual(error.permits, { wanted: 1, available: 0 })
      assert.include(error.message, "it had 0")
    })

    test("Every fiber that has waited for permits says what its process has last seen, whichever of them asked", function* () {
      const name = freshName("totals")
      const waits = (permits: number) =>
        Effect.forEach(
          [1, 2, 3],
          () =>
            Effect.flip(Semaphore.withPermits(Effect.void, name, permits, { waitTime: 100 })) as Effect.Effect<
              LockTimeout,
              never,
              RedisLock.RedisLock
            >,
          { concurrency: "unbounded" }
        )
      for (const { permits } of yield* waits(1))
        assert.deepStrictEqual(permits, { wanted: 1, available: 0, exists: false })
      yield* Semaphore.trySetPermits(name, 1)
      for (const { permits } of yield* waits(2)) assert.deepStrictEqual(permits, { wanted: 2, available: 1 })
    })

    test("Each client that is denied reports once that a semaphore has 5 permits and not 3, until setPermits corrects it", function* () {
      const name = freshName("totals")
      const warnings: Array<string> = []
      const logger = Logger.layer([
        Logger.make(({ logLevel, message }) => {
          if (logLevel === "Warn") warnings.push(String(message))
        })
      ])
      const before = PermitSemaphore.make(name, { permits: 5 })
      const after = PermitSemaphore.make(name, { permits: 3 })
      const ask = (semaphore: PermitSemaphore.PermitSemaphore) =>
        Effect.scoped(PermitSemaphore.tryScoped(semaphore, { permits: 2 })).pipe(Effect.provide(logger))
      yield* Effect.gen(function* () {
        yield* ask(before)
        assert.deepStrictEqual(warnings, [])
        for (let i = 0; i < 3; i++) yield* ask(after)
        assert.deepStrictEqual(warnings, [
          "The semaphore already exists with 5 permits; the 3 given here are ignored. " +
            "PermitSemaphore.setPermits changes the number."
        ])
        yield* ask(after).pipe(Effect.provide(Layer.fresh(client)))
        assert.strictEqual(warnings.length, 2)
        yield* PermitSemaphore.setPermits(after, 3)
        yield* ask(after).pipe(Effect.provide(Layer.fresh(client)))
        assert.strictEqual(warnings.length, 2)
      }).pipe((self) => PermitSemaphore.withPermits(self, before, 4))
    })
  })
}
