/**
 * The keys of fencing tokens: what they do when something else is there, when nothing is, and how to do without them.
 */
import { assert, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Option } from "effect"
import {
  FairLock,
  FencedLock,
  Lock,
  LockStore,
  MultiLock,
  NonReentrantLock,
  ReadWriteLock,
  RedisLock,
  SpinLock
} from "effect-redis-lock"
import { redisUrl } from "../kit/server/redisUrl.ts"
import { onRedis } from "../kit/stores.ts"
import { runOperation, typeOfKey } from "../kit/storeOperations.ts"
import { freshName } from "../kit/names.ts"
import { bare } from "../kit/server/bareRedis.ts"
import { until } from "../kit/eventually.ts"
import { sectionUntilTold } from "../kit/sections.ts"
import { testsOf } from "../kit/test.ts"

type AnyLock = Lock.Lock<RedisLock.RedisLock, any, any>

const tokenOf = (name: string) => `redisson_lock_token:{${name}}`

const kinds: Record<string, (name: string) => AnyLock> = {
  Lock: Lock.make,
  FairLock: FairLock.make,
  FencedLock: FencedLock.make,
  SpinLock: SpinLock.make,
  NonReentrantLock: NonReentrantLock.make,
  "fair NonReentrantLock": (name) => NonReentrantLock.make(name, { fair: true }),
  readLock: (name) => ReadWriteLock.make(name).readLock,
  writeLock: (name) => ReadWriteLock.make(name).writeLock,
  "MultiLock, its first": (name) => MultiLock.make([Lock.make(name), Lock.make(`${name} other`)]),
  "MultiLock, its last": (name) => MultiLock.make([Lock.make(`${name} other`), Lock.make(name)])
}

const tokenless: Record<string, (name: string) => Lock.Lock<RedisLock.RedisLock, any, undefined>> = {
  Lock: (name) => Lock.make(name, { tokens: "none" }),
  FairLock: (name) => FairLock.make(name, { tokens: "none" }),
  SpinLock: (name) => SpinLock.make(name, { tokens: "none" }),
  NonReentrantLock: (name) => NonReentrantLock.make(name, { tokens: "none" }),
  "fair NonReentrantLock": (name) => NonReentrantLock.make(name, { fair: true, tokens: "none" }),
  readLock: (name) => ReadWriteLock.make(name, { tokens: "none" }).readLock,
  writeLock: (name) => ReadWriteLock.make(name, { tokens: "none" }).writeLock
}

interface Backend {
  readonly store: Layer.Layer<LockStore.LockStore, unknown>
  /** Puts a text under a key. */
  readonly put: (key: string, text: string) => Effect.Effect<unknown, unknown, LockStore.LockStore>
  readonly get: (key: string) => Effect.Effect<unknown, unknown, LockStore.LockStore>
}

const backends: Record<string, Backend> = {
  memory: {
    store: LockStore.layerMemory,
    put: (key, text) =>
      LockStore.LockStore.use((store) =>
        // it writes any text
        runOperation(store, "client/set_label", [key], [text, 3_600_000])
      ),
    get: (key) =>
      LockStore.LockStore.use((store) =>
        Effect.map(
          runOperation(store, "lock/inspect", ["nothing", key]),
          (reply) => (reply as ReadonlyArray<unknown>)[1]
        )
      )
  },
  Redis: {
    store: onRedis,
    put: (key, text) =>
      Effect.scoped(Effect.flatMap(bare({ url: redisUrl }), (redis) => Effect.promise(() => redis.set(key, text)))),
    get: (key) =>
      Effect.scoped(Effect.flatMap(bare({ url: redisUrl }), (redis) => Effect.promise(() => redis.get(key))))
  }
}

for (const [title, { get, put, store }] of Object.entries(backends)) {
  const clients = RedisLock.layerFromStore({ fallbackInterval: "1 hour" })
  it.layer(Layer.provideMerge(clients, store), { excludeTestServices: true })(`tokens on ${title}`, (it) => {
    const test = testsOf(it.effect)

    for (const [kind, make] of Object.entries(kinds)) {
      test(`A value that is no token is refused as WrongType, and nothing is changed: ${kind}`, function* () {
        const texts = ["abc", "1.5", "nan", "", ...(kind === "FencedLock" ? [] : ["9007199254740993", "1e300"])]
        for (const text of texts) {
          const name = freshName("token")
          yield* put(tokenOf(name), text)
          for (const use of [
            Lock.withLock(Effect.void, make(name)),
            Lock.withLockIfAvailable(Effect.void, make(name))
          ]) {
            const error = yield* Effect.flip(use as Effect.Effect<unknown, { readonly _tag: string }, any>)
            assert.strictEqual(error._tag, "LockStoreError")
            assert.strictEqual((error as unknown as { readonly reason: string }).reason, "WrongType", text)
            assert.include(
              (error as unknown as Error).message,
              `no fencing token, under ${tokenOf(name)}`,
              "its message"
            )
          }
          for (const key of [name, `${name} other`, `redisson_lock_queue:{${name}}`]) {
            assert.strictEqual(yield* typeOfKey(key), "none", key)
          }
          assert.strictEqual(yield* get(tokenOf(name)), text)
        }
      })
    }

    test("A token is higher than the last one, even if that is just what the lower bound admits", function* () {
      const store = yield* LockStore.LockStore
      const name = freshName("token")
      const bound = Date.now() * 1000 + 60_000_000
      const tokenFor = (owner: string) =>
        Effect.gen(function* () {
          const reply = yield* runOperation(store, "lock/acquire", [name, tokenOf(name)], [owner, 9000, 90_000, bound])
          yield* runOperation(store, "lock/release", [name, `silent:${name}`], [owner, store.publish])
          return Array.isArray(reply) ? Number(reply[1]) : Number(reply)
        })
      assert.deepStrictEqual([yield* tokenFor("x:1"), yield* tokenFor("x:2")], [bound, bound + 1])
    })

    for (const code of ["LOADING", "READONLY", "BUSY", "OOM", "LATE 5", "connect ECONNREFUSED"]) {
      test(`A value that is no token is refused as WrongType also where the lock is called "${code}"`, function* () {
        const name = `${freshName()} ${code}`
        yield* put(tokenOf(name), "abc")
        const error = yield* Effect.flip(Lock.withLock(Effect.void, name))
        assert.strictEqual(error._tag === "LockStoreError" ? error.reason : error._tag, "WrongType")
        // and nothing was learnt of the server's clock
        const other = freshName()
        yield* Lock.withLock(Effect.void, other)
      })
    }

    test("A value under the token's key that is no token does not keep a held lock from being inspected", function* () {
      const name = freshName("token")
      yield* put(tokenOf(name), "abc")
      const lock = Lock.make(name, { tokens: "none" })
      const state = yield* Lock.withLock(Lock.inspect(lock), lock)
      assert.deepStrictEqual([state.holders.length, state.token], [1, undefined])
    })

    it.effect("A reader's token is higher than that of any earlier writer, even if Redis has forgotten that one", () =>
      Effect.gen(function* () {
        const name = freshName("token")
        const { readLock, writeLock } = ReadWriteLock.make(name, { leaseTime: "2 seconds" })
        const tokenOfA = (lock: AnyLock): Effect.Effect<bigint, unknown, any> =>
          Effect.scoped(Effect.map(Lock.scoped(lock), (holding) => (holding as { readonly token: bigint }).token))
        const first = yield* tokenOfA(readLock)
        assert.isTrue(first > 1_000_000_000_000_000n, `${first}, where nobody has ever written`)
        const written = yield* tokenOfA(writeLock)
        assert.isTrue(written > first)
        yield* until(
          "the token is forgotten",
          Effect.map(typeOfKey(tokenOf(name)), (type) => type === "none")
        )
        const second = yield* tokenOfA(readLock)
        assert.isTrue(second > written, `${second} after ${written}`)
        assert.isTrue((yield* tokenOfA(writeLock)) > second)
        assert.strictEqual(yield* typeOfKey(`${name} nothing`), "none")
      }).pipe(Effect.provide(Layer.fresh(RedisLock.layerFromStore({ tokenRetention: 0 }))))
    )

    for (const [kind, make] of Object.entries(tokenless)) {
      test(`${kind} without tokens excludes like one with tokens, and leaves nothing in Redis`, function* () {
        const name = freshName("token")
        const lock = make(name)
        const rival = kind === "readLock" ? ReadWriteLock.make(name).writeLock : kinds[kind]!(name)
        yield* Effect.scoped(
          Effect.gen(function* () {
            const holding = yield* Lock.scoped(lock)
            assert.isUndefined((holding as unknown as { readonly token: unknown }).token)
            yield* holding.ensureHeld
            yield* holding.renew("1 minute")
            if (!kind.endsWith("NonReentrantLock")) {
              const inner = yield* Lock.withLock(Lock.currentHolding(lock), lock)
              assert.isUndefined((inner as unknown as { readonly token: unknown }).token)
            }
            const taken = yield* Lock.withLockIfAvailable(Effect.void, rival as AnyLock).pipe(
              Effect.provide(Layer.fresh(clients))
            )
            assert.isTrue(Option.isNone(taken))
            assert.strictEqual(yield* typeOfKey(tokenOf(name)), "none")
          })
        )
        assert.strictEqual(yield* typeOfKey(name), "none")
        assert.strictEqual(yield* typeOfKey(tokenOf(name)), "none")
      })
    }

    for (const [kind, make] of Object.entries(tokenless)) {
      if (kind === "readLock" || kind === "SpinLock") continue
      test(`A waiter for ${kind} with tokens gets a new one from a holder without`, function* () {
        const name = freshName("token")
        const lock = kinds[kind]!(name)
        const tokenOfIt = Effect.scoped(
          Effect.map(Lock.scoped(lock), (holding) => (holding as { readonly token: bigint }).token)
        )
        const before = yield* tokenOfIt
        const held = yield* sectionUntilTold((body) => Lock.withLock(body, make(name)))
        const waiting = yield* Effect.forkChild(Effect.provide(tokenOfIt, Layer.fresh(clients)))
        yield* until(
          "it waits",
          Effect.map(Lock.inspect(lock), ({ waiting }) => waiting === 1)
        )
        yield* held.end
        const token = yield* Fiber.join(waiting)
        assert.isTrue(token > before, `${token} after ${before}`)
      })
    }

    test("Several locks, some of them without tokens, are acquired by one command", function* () {
      const [one, two, three] = [freshName("token"), freshName("token"), freshName("token")]
      const all = MultiLock.make([
        Lock.make(one),
        Lock.make(two, { tokens: "none" }),
        NonReentrantLock.make(three, { tokens: "none" })
      ])
      const tokens = yield* Effect.scoped(Effect.map(Lock.scoped(all), ({ token }) => token))
      assert.isTrue(tokens[one]! > 0n)
      assert.deepStrictEqual(tokens, { [one]: tokens[one], [two]: undefined, [three]: undefined })
      assert.strictEqual(yield* typeOfKey(tokenOf(one)), "string")
      for (const name of [two, three]) assert.strictEqual(yield* typeOfKey(tokenOf(name)), "none")
    })

    it.effect("A command for a lock without tokens that is sent twice is granted twice, by 0", () =>
      LockStore.LockStore.use((store) =>
        Effect.gen(function* () {
          const name = freshName("token")
          for (let i = 0; i < 2; i++) {
            assert.strictEqual(yield* runOperation(store, "lock/acquire", [name, name], ["owner", 30_000, 1, ""]), 0)
          }
          yield* runOperation(store, "lock/release", [name, `${name} channel`], ["owner", store.publish])
        })
      )
    )
  })
}

const patient = RedisLock.layerFromStore({ tokenRetention: "1 minute" })

it.live("The last token is remembered for the lease and the retention of the client that was granted it", () =>
  Effect.gen(function* () {
    const name = freshName("token")
    yield* Lock.withLock(Effect.void, name, { leaseTime: "10 seconds" })
    const redis = yield* bare({ url: redisUrl })
    const left = yield* Effect.promise(() => redis.pttl(tokenOf(name)))
    assert.isTrue(left > 10_000 && left <= 70_000, `${left}`)
  }).pipe(Effect.scoped, Effect.provide(Layer.provide(patient, backends["Redis"]!.store)))
)
