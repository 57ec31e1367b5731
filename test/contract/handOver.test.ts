/**
 * How a release hands a lock over, asked of the stores directly: to the owner with the oldest place whose client listens, or, by waking
 * all, to whoever takes no places. Runs of the specification show more, in specification.test.ts.
 */
import { storeOf } from "../kit/testStore.ts"
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { LockStore, type LockStoreError } from "effect-redis-lock"
import { freshName } from "../kit/names.ts"
import { stores } from "../kit/stores.ts"
import { until } from "../kit/eventually.ts"
import { clientId, isGranted, lifeOfKeyIn, listenTo, runOperation, tokenIn } from "../kit/storeOperations.ts"
import type { Store } from "../kit/wrappedStore.ts"
import { testsWith, titled } from "../kit/test.ts"

const clientIds = ["a", "b", "c"].map(clientId)
const [clientA, clientB, clientC] = clientIds as [string, string, string]

/** Much longer than a test takes, however busy the machine; a holder's lease is longer still. */
const [handOverMillis, leaseMillis] = [60_000, 120_000]

/** One lock, asked about without any client. */
const lockIn = (store: Store) => {
  const name = freshName("handOver")
  const of = (prefix: string) => `${prefix}:{${name}}`
  const [token, channel] = [of("redisson_lock_token"), of("redisson_lock__channel")]
  const places = of("effect_redis_lock_places")
  const tryAcquire = (owner: string) => runOperation(store, "lock/acquire", [name, token], [owner, leaseMillis, 60_000])
  const wait = (owner: string, hasAsked: 0 | 1 = 0, { placeAge = 0, tokenKey = token } = {}) =>
    runOperation(store, "lock/acquire", [name, tokenKey, places], [owner, leaseMillis, 60_000, "", hasAsked, placeAge])
  const waitFenced = (owner: string, hasAsked: 0 | 1 = 0, placeAge = 0) =>
    runOperation(store, "fenced_lock/acquire", [name, token, places], [owner, leaseMillis, hasAsked, placeAge])
  const release = (owner: string, publish: string = store.publish) =>
    runOperation(store, "lock/release", [name, channel, places, token], [owner, publish, handOverMillis, 60_000])
  const keep = (owner: string, millis: number) =>
    runOperation(store, "lock/keep", [name, channel], [owner, store.publish, millis])
  const inspect = runOperation(store, "lock/inspect", [name, token]) as Effect.Effect<
    readonly [left: number, token: unknown, fields: ReadonlyArray<string>],
    LockStoreError
  >
  const holder = Effect.map(inspect, ([, , fields]) => fields[0])
  const left = Effect.map(inspect, ([left]) => left)
  /** How much longer the places stay, milliseconds. */
  const placesLeft = lifeOfKeyIn(store, places)
  /** Listens, and returns what comes. */
  const listen = (suffix: string, from: Store = store) => listenTo(from, channel + suffix)
  return {
    tryAcquire,
    wait,
    waitFenced,
    holder,
    left,
    placesLeft,
    listen,
    release,
    keep,
    name,
    keys: [name, channel, places, token]
  }
}

/** Sends all of these at once, in this order: a server runs them one after the other, however busy the machine is. */
const atOnce = <A, E>(requests: ReadonlyArray<Effect.Effect<A, E>>) =>
  Effect.all(requests, { concurrency: "unbounded" })

for (const [where, layer] of Object.entries(stores)) {
  const test = titled(where, testsWith(layer))

  test("a release keeps the lock for the owner whose place is the oldest, for a short time", function* () {
    const lock = lockIn(yield* LockStore.LockStore)
    const first = yield* lock.tryAcquire("x:1")
    const hearsB = yield* lock.listen(`:${clientB}`)
    const hearsC = yield* lock.listen(`:${clientC}`)
    const all = yield* lock.listen("")
    yield* lock.listen(":ours")
    yield* lock.wait(`${clientB}:1`)
    yield* lock.wait(`${clientC}:1`)
    // asking again keeps the place
    const denied = (yield* lock.wait(`${clientB}:1`, 1)) as readonly [left: number, holder: string, micros: string]
    assert.strictEqual(denied[1], "x:1")
    assert.strictEqual(yield* lock.release("x:1"), 1)
    // what it needs to begin at once
    const [side, owner, token, micros, lease] = (yield* hearsB.message).split(" ")
    assert.deepStrictEqual([side, owner, lease], ["0", "1", `${handOverMillis}`])
    assert.isAbove(Number(token), tokenIn(first))
    assert.isAtLeast(Number(micros), Number(denied[2]))
    assert.strictEqual(yield* lock.holder, `${clientB}:1`)
    const left = yield* lock.left
    assert.isTrue(left > 0 && left <= handOverMillis, `${left} ms left`)
    assert.isTrue(yield* hearsC.isSilent)
    // without having asked once more: it gives back what was kept for it
    assert.strictEqual(yield* lock.release(`${clientB}:1`), 1)
    yield* hearsC.message
    assert.strictEqual(yield* lock.holder, `${clientC}:1`)
    assert.isTrue(yield* all.isSilent)
    // nobody has a place any more: whoever listens is woken
    assert.strictEqual(yield* lock.release(`${clientC}:1`), 2)
    assert.strictEqual(yield* all.message, "0")
  })

  test("a place that was lost is as old again as its client says", function* () {
    for (const side of ["wait", "waitFenced"] as const) {
      const lock = lockIn(yield* LockStore.LockStore)
      const asks = (owner: string, placeAge: number) =>
        side === "wait" ? lock.wait(owner, 1, { placeAge }) : lock.waitFenced(owner, 1, placeAge)
      yield* lock.listen(`:${clientA}`)
      yield* lock.listen(`:${clientB}`)
      yield* lock.tryAcquire("x:1")
      yield* asks(`${clientB}:1`, 0)
      yield* asks(`${clientA}:1`, 5_000_000)
      // no older than it was
      yield* asks(`${clientA}:1`, 0)
      yield* lock.release("x:1")
      assert.strictEqual(yield* lock.holder, `${clientA}:1`, side)
    }
  })

  test("an owner that was handed the lock and asks once more is granted it, with a higher token and its own lease", function* () {
    const lock = lockIn(yield* LockStore.LockStore)
    yield* lock.listen(`:${clientA}`)
    const first = yield* lock.tryAcquire("x:1")
    yield* lock.wait(`${clientA}:1`)
    yield* lock.release("x:1")
    const granted = yield* lock.wait(`${clientA}:1`, 1)
    assert.isAbove(tokenIn(granted), tokenIn(first))
    assert.isAbove(yield* lock.left, handOverMillis)
  })

  test("a release that leaves the lock to an owner makes it the holder for a short time, without its place, and tells nobody", function* () {
    const lock = lockIn(yield* LockStore.LockStore)
    const own = yield* lock.listen(`:${clientA}`)
    const all = yield* lock.listen("")
    yield* lock.listen(":ours")
    const first = yield* lock.tryAcquire("x:1")
    yield* lock.wait(`${clientA}:1`)
    assert.strictEqual(yield* lock.release("x:1", `${clientA}:1`), 1)
    assert.strictEqual(yield* lock.holder, `${clientA}:1`)
    const left = yield* lock.left
    assert.isTrue(left > 0 && left <= handOverMillis, `${left} ms left`)
    assert.isFalse(isGranted(yield* lock.wait(`${clientB}:1`)))
    // a release that comes twice
    assert.strictEqual(yield* lock.release("x:1", `${clientA}:1`), -1)
    const granted = yield* lock.wait(`${clientA}:1`, 1)
    assert.isAbove(tokenIn(granted), tokenIn(first))
    assert.isAbove(yield* lock.left, handOverMillis)
    // B has a place, and does not hear; A has none any more
    assert.strictEqual(yield* lock.release(`${clientA}:1`), 2)
    assert.strictEqual(yield* all.message, "0")
    assert.isTrue(yield* own.isSilent)
    // one that finds it free
    assert.strictEqual(yield* lock.release("x:2", `${clientA}:2`), 0)
    assert.isUndefined(yield* lock.holder)
  })

  test("places end a minute after the last request, so that those of dead clients do not stay", function* () {
    const lock = lockIn(yield* LockStore.LockStore)
    yield* lock.tryAcquire("x:1")
    yield* lock.wait(`${clientA}:1`)
    const left = yield* lock.placesLeft
    assert.isTrue(left > 0 && left <= 60_000, `${left} ms left`)
  })

  test("a client that does not hear that the lock is its own is passed over", function* () {
    const lock = lockIn(yield* LockStore.LockStore)
    yield* lock.tryAcquire("x:1")
    yield* lock.wait(`${clientA}:1`)
    yield* lock.wait(`${clientB}:1`)
    yield* lock.listen(`:${clientB}`)
    assert.strictEqual(yield* lock.release("x:1"), 1)
    assert.strictEqual(yield* lock.holder, `${clientB}:1`)
  })

  test("a release passes over a hundred owners that do not hear it, and behind more of them wakes whoever listens", function* () {
    const lock = lockIn(yield* LockStore.LockStore)
    yield* lock.tryAcquire("x:1")
    yield* Effect.forEach(
      Array.from({ length: 101 }, (_, i) => i),
      (i) => lock.wait(`${clientA}:${i}`),
      { concurrency: "unbounded", discard: true }
    )
    yield* lock.wait(`${clientB}:1`)
    const hearsB = yield* lock.listen(`:${clientB}`)
    const all = yield* lock.listen("")
    yield* lock.listen(":ours")
    assert.strictEqual(yield* lock.release("x:1"), 2)
    assert.strictEqual(yield* all.message, "0")
    assert.isUndefined(yield* lock.holder)
    assert.isTrue(yield* hearsB.isSilent)
    yield* lock.tryAcquire("x:2")
    assert.strictEqual(yield* lock.release("x:2"), 1)
    assert.strictEqual(yield* lock.holder, `${clientB}:1`)
  })

  test("a lock that nobody hears of is free", function* () {
    const lock = lockIn(yield* LockStore.LockStore)
    yield* lock.tryAcquire("x:1")
    yield* lock.wait(`${clientA}:1`)
    assert.strictEqual(yield* lock.release("x:1"), 1)
    assert.isUndefined(yield* lock.holder)
  })

  test("an owner that was passed over has a place again, behind the others, when it asks again", function* () {
    const lock = lockIn(yield* LockStore.LockStore)
    yield* lock.tryAcquire("x:1")
    yield* lock.wait(`${clientA}:1`)
    yield* lock.release("x:1")
    yield* lock.tryAcquire("x:2")
    const hearsA = yield* lock.listen(`:${clientA}`)
    yield* lock.listen(`:${clientB}`)
    yield* lock.wait(`${clientB}:1`)
    yield* lock.wait(`${clientA}:1`, 1)
    yield* lock.release("x:2")
    assert.strictEqual(yield* lock.holder, `${clientB}:1`)
    assert.isTrue(yield* hearsA.isSilent)
    yield* lock.release(`${clientB}:1`)
    yield* hearsA.message
    assert.strictEqual(yield* lock.holder, `${clientA}:1`)
  })

  test("an owner that is granted the lock because it asked has no place any more", function* () {
    const lock = lockIn(yield* LockStore.LockStore)
    const hearsA = yield* lock.listen(`:${clientA}`)
    yield* lock.tryAcquire("x:1")
    yield* lock.wait(`${clientA}:1`)
    yield* lock.release("x:1", "")
    assert.isNumber(yield* lock.wait(`${clientA}:1`, 1))
    yield* lock.release(`${clientA}:1`)
    assert.isUndefined(yield* lock.holder)
    assert.isTrue(yield* hearsA.isSilent)
  })

  test("a release that finds the lock free hands it over: the release before had told nobody", function* () {
    const lock = lockIn(yield* LockStore.LockStore)
    yield* lock.listen(`:${clientA}`)
    yield* lock.tryAcquire("x:1")
    yield* lock.wait(`${clientA}:1`)
    assert.strictEqual(yield* lock.release("x:1", ""), 1)
    assert.isUndefined(yield* lock.holder)
    assert.strictEqual(yield* lock.release("x:2"), 0)
    assert.strictEqual(yield* lock.holder, `${clientA}:1`)
  })

  test("an owner that asks gets the token of its kind of lock, whichever kind has handed it over", function* () {
    const store = yield* LockStore.LockStore
    const lock = lockIn(store)
    for (const client of clientIds) yield* lock.listen(`:${client}`)
    assert.strictEqual(tokenIn(yield* lock.waitFenced("x:1")), 1)
    yield* lock.wait(`${clientA}:1`, 0, { tokenKey: lock.name })
    yield* lock.waitFenced(`${clientB}:1`)
    yield* lock.wait(`${clientC}:1`)
    yield* lock.release("x:1")
    assert.strictEqual(tokenIn(yield* lock.wait(`${clientA}:1`, 1, { tokenKey: lock.name })), 0)
    yield* lock.release(`${clientA}:1`)
    // a counter stays one: each hand-over and each request counts
    assert.strictEqual(tokenIn(yield* lock.waitFenced(`${clientB}:1`, 1)), 4)
    yield* lock.release(`${clientB}:1`)
    assert.strictEqual(tokenIn(yield* lock.wait(`${clientC}:1`, 1)), 6)
  })

  /** A lock that a listener without a place is told of: Java, which listens to its channel alone. */
  const besideJava = Effect.fnUntraced(function* (store: Store) {
    const lock = lockIn(store)
    // The store knows the server's clock after this, and the server all scripts: of what is then sent at once, nothing is sent again.
    const other = lockIn(store)
    yield* other.tryAcquire("x:1")
    yield* other.wait("x:2")
    yield* other.release("x:1")
    yield* other.holder
    const elsewhere = yield* storeOf(layer)
    const java = yield* lock.listen("", where === "memory" ? store : elsewhere)
    return { java, lock }
  })

  test("a release wakes listeners that take no places, and tells clients that do first", function* () {
    const store = yield* LockStore.LockStore
    const { java, lock } = yield* besideJava(store)
    yield* lock.listen("")
    const ours = yield* lock.listen(":ours")
    const hearsA = yield* lock.listen(`:${clientA}`)
    yield* lock.tryAcquire("x:1")
    yield* lock.wait(`${clientA}:1`)
    assert.strictEqual(yield* lock.release("x:1"), 1 + 2)
    assert.strictEqual(yield* java.message, "0")
    assert.include(["10", "50", "250"], yield* ours.message)
    assert.isUndefined(yield* lock.holder)
    assert.isTrue(yield* hearsA.isSilent)
  })

  test("what notes the turn of others ends with it, where nobody has a place", function* () {
    const { lock } = yield* besideJava(yield* LockStore.LockStore)
    yield* lock.listen("")
    const ours = yield* lock.listen(":ours")
    yield* lock.tryAcquire("x:1")
    yield* lock.release("x:1")
    yield* ours.message
    const left = yield* lock.placesLeft
    assert.isTrue(left !== -1 && left <= 250 + 90, `${left} ms left`)
  })

  test("a second release within the turn of others hands the lock over to nobody either", function* () {
    const store = yield* LockStore.LockStore
    const { lock } = yield* besideJava(store)
    yield* lock.listen(`:${clientA}`)
    const isLeftToOthers = Effect.gen(function* () {
      // the last turn was long ago: the first release begins one
      yield* Effect.sleep("110 millis")
      const replies = yield* atOnce<unknown, LockStoreError>([
        lock.tryAcquire("x:1"),
        lock.wait(`${clientA}:1`),
        lock.release("x:1"),
        lock.tryAcquire("x:2"),
        lock.release("x:2"),
        lock.holder
      ])
      for (const owner of ["x:2", `${clientA}:1`]) yield* lock.release(owner, "")
      return isGranted(replies[3]) && replies[5] === undefined
    })
    // a server that is stopped for as long as the turn lasts hands it over: once more
    yield* until("the second release hands it over to nobody", isLeftToOthers)
  })

  test("a lock is handed over between two turns of the listeners that take no places", function* () {
    const store = yield* LockStore.LockStore
    const { lock } = yield* besideJava(store)
    yield* lock.listen(`:${clientA}`)
    const isHandedOver = Effect.gen(function* () {
      yield* lock.tryAcquire("x:1")
      yield* lock.wait(`${clientA}:1`)
      yield* lock.release("x:1")
      const holder = yield* lock.holder
      yield* lock.release(`${clientA}:1`, "")
      return holder === `${clientA}:1`
    })
    assert.isFalse(yield* isHandedOver)
    // within 100 ms of a turn
    yield* until("a release has handed the lock over", isHandedOver)
    yield* until(
      "the others have their turn again",
      Effect.map(isHandedOver, (it) => !it)
    )
  })

  test("a lock that stays locked after its release is held by nobody until the release of that hands it over", function* () {
    const lock = lockIn(yield* LockStore.LockStore)
    const hearsB = yield* lock.listen(`:${clientB}`)
    const all = yield* lock.listen("")
    yield* lock.listen(":ours")
    yield* lock.tryAcquire("x:1")
    yield* lock.wait(`${clientB}:1`)
    assert.strictEqual(yield* lock.keep("x:2", 60_000), -1)
    for (const again of [false, true]) {
      assert.strictEqual(yield* lock.keep("x:1", 60_000), 1, `again: ${again}`)
      assert.strictEqual(yield* lock.holder, "x:1:kept")
    }
    assert.strictEqual(yield* all.message, "0")
    assert.isAbove((yield* lock.left) as number, 30_000)
    // nothing that its owner has sent before frees it, and it is refused to the oldest place, too
    assert.strictEqual(yield* lock.release("x:1"), -1)
    for (const reply of [yield* lock.tryAcquire("x:2"), yield* lock.wait(`${clientB}:1`, 1)]) {
      assert.strictEqual((reply as ReadonlyArray<unknown>)[1], "x:1:kept")
    }
    yield* lock.release("x:1:kept")
    assert.strictEqual(yield* lock.holder, `${clientB}:1`)
    assert.match(yield* hearsB.message, new RegExp(`^0 1 \\d+ \\d+ ${handOverMillis}$`))
    // one that comes too late takes it from nobody
    assert.strictEqual(yield* lock.keep("x:1", 60_000), -1)
    assert.strictEqual(yield* lock.holder, `${clientB}:1`)
  })

  for (const hasPlace of [true, false]) {
    const title = hasPlace ? "" : ", even if none of them had waited"
    test(`while it is the turn of others, clients that take places are refused a lock that is free${title}`, function* () {
      const store = yield* LockStore.LockStore
      const { lock } = yield* besideJava(store)
      const askInTheirTurn = Effect.gen(function* () {
        const replies = yield* atOnce([
          lock.tryAcquire("x:1"),
          ...(hasPlace ? [lock.wait(`${clientA}:1`)] : []),
          lock.release("x:1"),
          lock.wait(`${clientB}:1`)
        ])
        const reply = replies.at(-1)
        if (isGranted(reply)) {
          // this machine was late, or there was no turn: once more
          yield* lock.release(`${clientB}:1`, "")
          return false
        }
        const [left, holder] = reply as readonly [number, string]
        assert.isTrue(left > 0 && left <= 250, `${left} ms left`)
        assert.strictEqual(holder, "")
        return true
      })
      yield* until("a request within the turn", askInTheirTurn)
      // Java asks as it always does
      assert.isNumber(yield* lock.tryAcquire("java:1"))
      yield* lock.release("java:1", "")
      yield* until("the turn is over", Effect.map(lock.wait(`${clientB}:1`, 1), isGranted))
      assert.strictEqual(yield* lock.holder, `${clientB}:1`)
    })
  }

  test("a client that gives up during the turn of others does not end it", function* () {
    const store = yield* LockStore.LockStore
    const { lock } = yield* besideJava(store)
    yield* lock.listen(`:${clientA}`)
    const giveUpInTheirTurn = Effect.gen(function* () {
      const replies = yield* atOnce([
        lock.tryAcquire("x:1"),
        lock.wait(`${clientA}:1`),
        lock.release("x:1"),
        lock.release(`${clientC}:1`),
        // Java asks as it always does
        lock.tryAcquire("java:1")
      ])
      const isJavas = isGranted(replies.at(-1))
      for (const owner of ["java:1", `${clientA}:1`]) yield* lock.release(owner, "")
      // or this machine was late, or there was no turn: once more
      return isJavas
    })
    yield* until("the lock was left to the others", giveUpInTheirTurn)
  })

  test("a release of several locks hands each of them over as the release of a single lock does, or tells nobody of it", function* () {
    const store = yield* LockStore.LockStore
    const locks = [lockIn(store), lockIn(store), lockIn(store), lockIn(store)] as const
    const [handedOver, left, unwanted, foreign] = locks
    const hears = yield* handedOver.listen(`:${clientB}`)
    yield* left.listen(`:${clientB}`)
    const all = yield* unwanted.listen("")
    yield* unwanted.listen(":ours")
    for (const { tryAcquire } of locks.slice(0, 3)) yield* tryAcquire("x:1")
    yield* foreign.tryAcquire("x:2")
    for (const { wait } of [handedOver, left]) yield* wait(`${clientB}:1`)
    const release = runOperation(
      store,
      "multi_lock/release",
      locks.flatMap(({ keys }) => keys),
      ["x:1", 2000, 60_000, store.publish, "", store.publish, store.publish]
    )
    assert.deepStrictEqual(yield* release, [1, 1, 2, -1])
    yield* hears.message
    assert.strictEqual(yield* all.message, "0")
    assert.strictEqual(yield* handedOver.holder, `${clientB}:1`)
    const kept = yield* handedOver.left
    assert.isTrue(kept > 0 && kept <= 2000, `${kept} ms left`)
    assert.isUndefined(yield* left.holder)
    // a command that comes twice
    assert.deepStrictEqual(yield* release, [-1, 0, 0, -1])
    assert.strictEqual(yield* handedOver.holder, `${clientB}:1`)
  })

  test("a release of several locks leaves one of them to an owner, and hands over another", function* () {
    const store = yield* LockStore.LockStore
    const [left, handedOver] = [lockIn(store), lockIn(store)]
    const hears = yield* handedOver.listen(`:${clientB}`)
    for (const lock of [left, handedOver]) {
      yield* lock.tryAcquire("x:1")
      yield* lock.wait(`${clientB}:1`)
    }
    const release = runOperation(
      store,
      "multi_lock/release",
      [...left.keys, ...handedOver.keys],
      ["x:1", 2000, 60_000, `${clientA}:1`, store.publish]
    )
    assert.strictEqual(yield* release, 1)
    yield* hears.message
    assert.deepStrictEqual([yield* left.holder, yield* handedOver.holder], [`${clientA}:1`, `${clientB}:1`])
    const millis = yield* left.left
    assert.isTrue(millis > 0 && millis <= 2000, `${millis} ms left`)
    assert.isTrue(isGranted(yield* left.wait(`${clientA}:1`, 1)))
  })

  test("a release of several locks leaves them to listeners that take no places every 100 ms", function* () {
    const store = yield* LockStore.LockStore
    const { java, lock } = yield* besideJava(store)
    const other = lockIn(store)
    yield* lock.listen("")
    const ours = yield* lock.listen(":ours")
    yield* lock.listen(`:${clientA}`)
    for (const { tryAcquire } of [lock, other]) yield* tryAcquire("x:1")
    yield* lock.wait(`${clientA}:1`)
    yield* runOperation(
      store,
      "multi_lock/release",
      [...lock.keys, ...other.keys],
      ["x:1", 2000, 60_000, store.publish, store.publish]
    )
    assert.strictEqual(yield* java.message, "0")
    assert.include(["10", "50", "250"], yield* ours.message)
    assert.isUndefined(yield* lock.holder)
  })
}
