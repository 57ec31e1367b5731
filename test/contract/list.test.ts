/**
 * `Lock.list` tells the same on memory, on Redis, and through a key prefix.
 */
import { randomOf } from "@effect-redis-lock/playground/VirtualTime"
import { assert } from "@effect/vitest"
import { Effect, Layer, Stream } from "effect"
import { FairLock, Lock, LockStore, PermitSemaphore, ReadWriteLock, RedisLock, Semaphore } from "effect-redis-lock"
import { matcherOf } from "../../packages/cli/dist/ui/glob.js"
import { freshName } from "../kit/names.ts"
import { onRedis } from "../kit/stores.ts"
import { as, clientLayer, serviceOf, testStore } from "../kit/testStore.ts"
import { testLive, test, testsWith } from "../kit/test.ts"

const listed = (pattern: string) =>
  Lock.list(pattern).pipe(
    Stream.runCollect,
    Effect.map((names) =>
      names
        .map(({ held, holders, kind, name }) => [name, kind, holders.map(({ mode }) => mode).join(), held] as const)
        .toSorted(([one], [other]) => (one < other ? -1 : 1))
    )
  )

for (const [title, store, keyPrefix] of [
  ["memory", LockStore.layerMemory, ""],
  ["Redis", onRedis, ""],
  ["Redis, with a key prefix", onRedis, "app[1]*:"]
] as const) {
  testsWith(RedisLock.layerFromStore({ keyPrefix }).pipe(Layer.provide(store)))(
    `${title}: list tells of locks of every kind and of leased permits, once each, and of nothing else`,
    function* () {
      const name = freshName("list")
      assert.deepStrictEqual(yield* listed(`${name}*`), [])
      yield* Lock.scoped(`${name}:a`)
      yield* Lock.scoped(FairLock.make(`${name}:b`))
      yield* Lock.scoped(ReadWriteLock.make(`${name}:c`).readLock)
      yield* PermitSemaphore.scoped(PermitSemaphore.make(`${name}:d`, { permits: 3 }), { permits: 2 })
      // with a hash tag of its own
      yield* PermitSemaphore.scoped(PermitSemaphore.make(`${name}:{e}`, { permits: 1 }))
      yield* PermitSemaphore.withPermit(Effect.void, PermitSemaphore.make(`${name}:free`, { permits: 1 }))
      yield* Semaphore.withPermits(Effect.void, Semaphore.make(`${name}:counter`, { permits: 2 }), 1)
      assert.deepStrictEqual(yield* listed(`${name}*`), [
        [`${name}:a`, "lock", "exclusive", 0],
        [`${name}:b`, "lock", "exclusive", 0],
        [`${name}:c`, "read-write lock", "read", 0],
        [`${name}:d`, "permit semaphore", "", 2],
        [`${name}:{e}`, "permit semaphore", "", 1]
      ])
      assert.deepStrictEqual(yield* listed(`${name}:?`), (yield* listed(`${name}*`)).slice(0, 4))
    }
  )

  testsWith(RedisLock.layerFromStore({ keyPrefix }).pipe(Layer.provide(store)))(
    `${title}: list tells of a lock though something else lies where permits of its name would`,
    function* () {
      const name = `{${freshName("list")}}:a`
      yield* Lock.scoped(name)
      yield* Semaphore.trySetPermits(`${name}:timeout`, 3)
      assert.deepStrictEqual(yield* listed(`${name}*`), [[name, "lock", "exclusive", 0]])
    }
  )
}

test("What SCAN finds twice is looked at and told once", function* () {
  const inner = yield* testStore()
  const store = {
    ...inner.store,
    scan: (pattern: string, type: "hash" | "zset") => {
      const found = inner.store.scan(pattern, type)
      return Stream.concat(found, found)
    }
  }
  const service = yield* serviceOf(clientLayer(store))
  yield* Effect.gen(function* () {
    yield* Lock.scoped("a")
    yield* PermitSemaphore.scoped(PermitSemaphore.make("b", { permits: 3 }))
    yield* PermitSemaphore.scoped(PermitSemaphore.make("{c}d{e}", { permits: 3 }))
    inner.operations.length = 0
    assert.deepStrictEqual(yield* listed("*"), [
      ["a", "lock", "exclusive", 0],
      ["b", "permit semaphore", "", 1],
      ["{c}d{e}", "permit semaphore", "", 1]
    ])
    assert.deepStrictEqual(
      inner.operations.filter((operation) => operation === "lock/look"),
      ["lock/look", "lock/look", "lock/look"]
    )
  }).pipe(as(service))
})

/** Patterns, and the ends of names that each matches. */
const known: ReadonlyArray<readonly [pattern: string, matching: ReadonlyArray<string>]> = [
  ["a\\:5*", ["a:5", "a:5-c"]],
  ['\\"\\_\\-\\a', ['"_-a']],
  ["[c-a]", ["a", "b", "c"]],
  ["[^c-a]", ["-", "]", "^", "_"]],
  ["[\\^\\]-]", ["-", "]", "^"]],
  ["[b-]", ["]", "^", "_", "a", "b"]],
  ["[", []],
  ["[^", ["-", "]", "^", "_", "a", "b", "c"]],
  ["[ab", ["a", "b"]],
  ["a\\", ["a\\"]],
  ["[]", []],
  ["[^]", ["-", "]", "^", "_", "a", "b", "c"]],
  ["é", ["é"]],
  ["??", ["-]", "a\\", "é"]],
  ["a.c", []],
  ["$(|", ["$(|"]]
]

const ends = [...new Set([...known.flatMap(([, matching]) => matching), "a\nb", "[a]", "a-c", "-]", "abc", "aé"])]

/** A random pattern of ASCII characters. Where bytes above them are between the ends of a range depends on the server's processor. */
const randomPattern = (random: () => number): string => {
  const one = (from: string) => from[Math.floor(random() * from.length)]!
  return Array.from({ length: 1 + Math.floor(random() * 6) }, () => one('abc*?[[]]^-\\:"_')).join("")
}

testLive(
  "Lock.list finds the same names on memory and on Redis, and redis-lock ui those too, whatever the pattern",
  function* () {
    const stem = `${freshName("glob")}/`
    const [memory, redis] = yield* Effect.forEach([LockStore.layerMemory, onRedis], (store) =>
      serviceOf(RedisLock.layerFromStore().pipe(Layer.provide(store), Layer.orDie))
    )
    for (const service of [memory!, redis!]) {
      yield* Effect.forEach(ends, (end) => as(service)(Lock.scoped(stem + end)), { discard: true })
    }
    const found = (pattern: string) =>
      Effect.map(listed(stem + pattern), (all) => all.map(([name]) => name.slice(stem.length)))
    const inUi = (pattern: string) => ends.filter((end) => matcherOf(stem + pattern)(stem + end)).toSorted()
    for (const [pattern, matching] of known) {
      assert.sameMembers(yield* as(redis!)(found(pattern)), [...matching], pattern)
      assert.sameMembers(yield* as(memory!)(found(pattern)), [...matching], pattern)
      assert.sameMembers(inUi(pattern), [...matching], pattern)
    }
    const random = randomOf(1)
    for (let i = 0; i < 300; i++) {
      const pattern = randomPattern(random)
      const onServer = yield* as(redis!)(found(pattern))
      assert.deepStrictEqual(yield* as(memory!)(found(pattern)), onServer, pattern)
      assert.deepStrictEqual(inUi(pattern), onServer, pattern)
    }
  }
)
