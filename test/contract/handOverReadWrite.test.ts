/**
 * How a release hands a read-write lock over, asked of the stores directly: to the writer with the oldest place, or to the readers before
 * the next writer. Who is let in, for how long, and in which order: runs of the specification, in specification.test.ts; here, what they
 * leave out.
 */
import { storeOf } from "../kit/testStore.ts"
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { LockStore, type LockStoreError } from "effect-redis-lock"
import { freshName } from "../kit/names.ts"
import { stores } from "../kit/stores.ts"
import { eventually, until } from "../kit/eventually.ts"
import { clientId, isGranted, listenTo, runOperation, tokenIn } from "../kit/storeOperations.ts"
import type { Store } from "../kit/wrappedStore.ts"
import { testsWith, titled } from "../kit/test.ts"

const clientIds = ["a", "b", "c", "d"].map(clientId)
const [clientA, clientB, clientC] = clientIds as [string, string, string]
const [a, b, c, d] = clientIds.map((client) => `${client}:1`) as [string, string, string, string]

/** Much longer than a test takes, however busy the machine; a holder's lease is longer still. */
const [keptMillis, leaseMillis] = [60_000, 120_000]
const handedOver = (side: "read" | "write") => new RegExp(`^${side === "read" ? 0 : 1} 1 \\d+ \\d+ ${keptMillis}$`)

/** One lock, asked about without any client. */
const lockIn = (store: Store) => {
  const name = freshName("handOver")
  const of = (prefix: string) => `${prefix}:{${name}}`
  const [token, channel, places] = [
    of("redisson_lock_token"),
    of("redisson_rwlock"),
    of("effect_redis_lock_places")
  ] as const
  const readers = of("effect_redis_lock_readers")
  const hold = (owner: string) => `{${name}}:${owner}:rwlock_timeout:1`
  const writeAs = (owner: string, placeOwner: string, hasAsked: 0 | 1, placeAge = 0) =>
    runOperation(
      store,
      "write_lock/acquire",
      [name, token, readers, places],
      [owner, leaseMillis, 60_000, "", placeOwner, hasAsked, placeAge]
    )
  const write = (owner: string, hasAsked: 0 | 1 = 0, placeAge = 0) => writeAs(owner, owner, hasAsked, placeAge)
  const readAs = (owner: string, hasAsked: 0 | 1 | "", waitedMicros: number | "", writer: string, placeAge = 0) =>
    runOperation(
      store,
      "read_lock/acquire",
      [name, token, hold(owner), readers, places],
      [owner, leaseMillis, writer, 7, waitedMicros, hasAsked, placeAge]
    )
  const read = (owner: string, hasAsked: 0 | 1 = 0, writer = "") => readAs(owner, hasAsked, 0, writer)
  /** As Java does, or a client that takes no places. */
  const tryWrite = (owner: string) => writeAs(owner, "", 0)
  const tryRead = (owner: string, waitedMicros: number | "" = "") => readAs(owner, "", waitedMicros, "")
  const release =
    (side: "read" | "write") =>
    (owner: string, publish: string = store.publish) =>
      runOperation(
        store,
        side === "read" ? "read_lock/release" : "write_lock/release",
        [name, channel, `{${name}}`, readers, places, token],
        [owner, publish, keptMillis, 60_000, ...(side === "read" ? [] : [owner])]
      )
  const inspect = runOperation(store, "lock/inspect", [name, token]) as Effect.Effect<
    readonly [left: number, token: unknown, fields: ReadonlyArray<string>],
    LockStoreError
  >
  /** The mode, and who holds. */
  const state = Effect.map(inspect, ([, , fields]) => {
    const entries = Array.from({ length: fields.length / 2 }, (_, i) => [fields[2 * i]!, fields[2 * i + 1]!] as const)
    const mode = entries.find(([field]) => field === "mode")?.[1]
    return mode === undefined
      ? []
      : [
          mode,
          ...entries
            .map(([field]) => field)
            .filter((field) => field !== "mode")
            .toSorted()
        ]
  })
  const left = Effect.map(inspect, ([left]) => left)
  /** Listens, and returns what comes. */
  const listen = (suffix: string, from: Store = store) => listenTo(from, channel + suffix)
  /** A message to everybody: a forced release tells "0" after readers. */
  const tellAll = runOperation(store, "read_lock/force_release", [name, channel, `{${name}}`, readers], [store.publish])
  return {
    endRead: release("read"),
    endWrite: release("write"),
    left,
    listen,
    name,
    read,
    state,
    tellAll,
    tryRead,
    tryWrite,
    write,
    /** As a client that is not handed the lock, whose writers have one place. */
    writeUnder: (owner: string, client: string) => writeAs(owner, client, 0)
  }
}

for (const [where, layer] of Object.entries(stores)) {
  const test = titled(where, testsWith(layer))

  test("the release of a writer keeps the lock for the writer whose place is the oldest, and tells it alone", function* () {
    const lock = lockIn(yield* LockStore.LockStore)
    const first = yield* lock.tryWrite("x:1")
    const hearsA = yield* lock.listen(`:${clientA}`)
    const hearsB = yield* lock.listen(`:${clientB}`)
    const all = yield* lock.listen("")
    yield* lock.listen(":ours")
    yield* lock.write(a)
    yield* lock.write(b)
    // asking again keeps the place
    assert.isFalse(isGranted(yield* lock.write(a, 1)))
    assert.strictEqual(yield* lock.endWrite("x:1"), 1)
    assert.match(yield* hearsA.message, handedOver("write"))
    assert.deepStrictEqual(yield* lock.state, ["write", `${a}:write`])
    const left = yield* lock.left
    assert.isTrue(left > 0 && left <= keptMillis, `${left} ms left`)
    assert.isTrue(yield* hearsB.isSilent)
    // once more: it is granted, with a token and a lease of its own
    const granted = yield* lock.write(a, 1)
    assert.isAbove(tokenIn(granted), tokenIn(first))
    assert.isAbove(yield* lock.left, keptMillis)
    assert.strictEqual(yield* lock.endWrite(a), 1)
    assert.match(yield* hearsB.message, handedOver("write"))
    assert.isTrue(yield* all.isSilent)
    // without having asked once more: it gives back what was kept for it, and nobody has a place any more
    assert.strictEqual(yield* lock.endWrite(b), 2)
    assert.strictEqual(yield* all.message, "1")
    assert.deepStrictEqual(yield* lock.state, [])
  })

  test("a writer leaves the lock to another one, for a short time, and tells nobody", function* () {
    const lock = lockIn(yield* LockStore.LockStore)
    const own = yield* lock.listen(`:${clientA}`)
    const all = yield* lock.listen("")
    yield* lock.listen(":ours")
    const first = yield* lock.tryWrite("x:1")
    yield* lock.write(a)
    assert.strictEqual(yield* lock.endWrite("x:1", a), 1)
    assert.deepStrictEqual(yield* lock.state, ["write", `${a}:write`])
    const left = yield* lock.left
    assert.isTrue(left > 0 && left <= keptMillis, `${left} ms left`)
    for (const reply of [yield* lock.write(b), yield* lock.tryRead("x:2")]) assert.isFalse(isGranted(reply))
    // a release that comes twice
    assert.strictEqual(yield* lock.endWrite("x:1", a), -1)
    const granted = yield* lock.write(a, 1)
    assert.isAbove(tokenIn(granted), tokenIn(first))
    assert.isAbove(yield* lock.left, keptMillis)
    assert.strictEqual(yield* lock.endWrite(a), 2)
    assert.strictEqual(yield* all.message, "1")
    assert.isTrue(yield* own.isSilent)
    assert.deepStrictEqual(yield* lock.state, [])
  })

  test("a writer that goes on reading leaves the lock to no other writer", function* () {
    const lock = lockIn(yield* LockStore.LockStore)
    yield* lock.tryWrite("x:1")
    assert.isTrue(isGranted(yield* lock.read("x:1", 0, "x:1")))
    assert.strictEqual(yield* lock.endWrite("x:1", a), 1)
    assert.deepStrictEqual(yield* lock.state, ["read", "x:1"])
  })

  test("a writer lets readers go first that have an older place, or have waited longer, and no others", function* () {
    const lock = lockIn(yield* LockStore.LockStore)
    yield* lock.tryWrite(a)
    yield* lock.read(a, 0, a)
    yield* lock.read(b)
    yield* lock.write(c)
    // what Java does: nobody is told
    yield* lock.endWrite(a, "")
    assert.isFalse(isGranted(yield* lock.read(d)))
    assert.isFalse(isGranted(yield* lock.tryRead("x:1", 0)))
    assert.isTrue(isGranted(yield* lock.tryRead("x:2", 60_000_000)))
    assert.isTrue(isGranted(yield* lock.tryRead("x:3")), "readers are preferred")
    assert.isTrue(isGranted(yield* lock.read(b, 1)))
    assert.isFalse(isGranted(yield* lock.read(d, 1)))
  })

  test("a writer that has not asked for five seconds does not keep readers out", function* () {
    const lock = lockIn(yield* LockStore.LockStore)
    yield* lock.tryRead("x:1")
    yield* lock.write(a)
    const reply = yield* lock.read(b)
    const [left, holder] = reply as readonly [number, string]
    assert.isTrue(left > 0 && left <= 5000, `${left} ms left`)
    assert.strictEqual(holder, clientA)
    yield* eventually("the reader enters", lock.read(b, 1), isGranted, "30 seconds")
  })

  test("a writer that gives up among readers lets in those behind it", function* () {
    const lock = lockIn(yield* LockStore.LockStore)
    const hears = yield* Effect.forEach(clientIds, (client) => lock.listen(`:${client}`))
    const all = yield* lock.listen("")
    yield* lock.listen(":ours")
    yield* lock.tryRead("x:1")
    for (const ask of [lock.write(a), lock.read(b), lock.write(c), lock.read(d)]) yield* ask
    assert.strictEqual(yield* lock.endWrite(a), -1)
    assert.match(yield* hears[1]!.message, handedOver("read"))
    assert.deepStrictEqual(yield* lock.state, ["read", b, "x:1"])
    assert.isTrue(isGranted(yield* lock.read(b, 1)))
    for (const { isSilent } of [hears[0]!, hears[2]!, hears[3]!, all]) assert.isTrue(yield* isSilent)
  })

  test("a writer that gives up tells nobody while another one has an older place", function* () {
    const lock = lockIn(yield* LockStore.LockStore)
    const hears = yield* lock.listen("")
    yield* lock.listen(":ours")
    const hearsC = yield* lock.listen(`:${clientC}`)
    yield* lock.tryRead("x:1")
    for (const ask of [lock.write(a), lock.write(b), lock.read(c)]) yield* ask
    assert.strictEqual(yield* lock.endWrite(b), -1)
    assert.isTrue(yield* hearsC.isSilent)
    // what comes after that is the first that is heard
    yield* lock.tellAll
    assert.strictEqual(yield* hears.message, "0")
  })

  test("a reader that was handed the lock and does not ask keeps it for no longer than the release says", function* () {
    const lock = lockIn(yield* LockStore.LockStore)
    yield* lock.listen(`:${clientA}`)
    yield* lock.listen(`:${clientB}`)
    yield* lock.tryWrite("x:1")
    yield* lock.read(a)
    yield* lock.read(b)
    yield* lock.endWrite("x:1")
    yield* lock.read(a, 1)
    yield* lock.endRead(a)
    const left = yield* lock.left
    assert.isTrue(left > 0 && left <= keptMillis, `${left} ms left`)
    // it gives back what was kept for it
    assert.strictEqual(yield* lock.endRead(b), 1)
    assert.deepStrictEqual(yield* lock.state, [])
  })

  test("a writer that goes on reading lets in the readers before the next writer", function* () {
    const lock = lockIn(yield* LockStore.LockStore)
    const hears = yield* Effect.forEach(clientIds, (client) => lock.listen(`:${client}`))
    const all = yield* lock.listen("")
    yield* lock.listen(":ours")
    yield* lock.tryWrite(a)
    yield* lock.read(a, 0, a)
    for (const ask of [lock.read(b), lock.write(c), lock.read(d)]) yield* ask
    assert.strictEqual(yield* lock.endWrite(a), 1)
    assert.match(yield* hears[1]!.message, handedOver("read"))
    assert.deepStrictEqual(yield* lock.state, ["read", a, b])
    assert.isAbove(yield* lock.left, keptMillis)
    yield* lock.endRead(b)
    assert.isTrue(yield* hears[2]!.isSilent)
    yield* lock.endRead(a)
    assert.deepStrictEqual(yield* lock.state, ["write", `${c}:write`])
    assert.isTrue(yield* hears[3]!.isSilent)
    assert.isTrue(yield* all.isSilent)
  })

  test("a writer that goes on reading hands nothing over to the writer that is next, and wakes nobody", function* () {
    const lock = lockIn(yield* LockStore.LockStore)
    const hearsB = yield* lock.listen(`:${clientB}`)
    const all = yield* lock.listen("")
    yield* lock.listen(":ours")
    yield* lock.tryWrite(a)
    yield* lock.read(a, 0, a)
    yield* lock.write(b)
    assert.strictEqual(yield* lock.endWrite(a), 1)
    assert.deepStrictEqual(yield* lock.state, ["read", a])
    assert.isTrue(yield* hearsB.isSilent)
    assert.isTrue(yield* all.isSilent)
    yield* lock.endRead(a)
    assert.match(yield* hearsB.message, handedOver("write"))
  })

  test("clients that do not hear that the lock is their own are passed over", function* () {
    const lock = lockIn(yield* LockStore.LockStore)
    yield* lock.tryWrite("x:1")
    yield* lock.write(a)
    yield* lock.read(b)
    yield* lock.write(c)
    yield* lock.listen(`:${clientC}`)
    assert.strictEqual(yield* lock.endWrite("x:1"), 1)
    assert.deepStrictEqual(yield* lock.state, ["write", `${c}:write`])
  })

  test("a release looks at a hundred places, and behind more of them wakes whoever listens", function* () {
    const lock = lockIn(yield* LockStore.LockStore)
    yield* lock.tryWrite("x:1")
    yield* Effect.forEach(
      Array.from({ length: 101 }, (_, i) => i),
      (i) => (i % 2 === 0 ? lock.write : lock.read)(`${clientA}:${i}`),
      { concurrency: "unbounded", discard: true }
    )
    yield* lock.write(b)
    yield* lock.listen(`:${clientB}`)
    const all = yield* lock.listen("")
    yield* lock.listen(":ours")
    assert.strictEqual(yield* lock.endWrite("x:1"), 2)
    assert.strictEqual(yield* all.message, "1")
    assert.deepStrictEqual(yield* lock.state, [])
    yield* lock.tryWrite("x:2")
    assert.strictEqual(yield* lock.endWrite("x:2"), 1)
    assert.deepStrictEqual(yield* lock.state, ["write", `${b}:write`])
  })

  test("an owner that is released without holding the lock, or is granted it because it asked, has no place any more", function* () {
    const lock = lockIn(yield* LockStore.LockStore)
    const hears = yield* Effect.forEach(clientIds, (client) => lock.listen(`:${client}`))
    yield* lock.tryWrite("x:1")
    for (const ask of [lock.write(a), lock.read(b), lock.write(c), lock.read(d)]) yield* ask
    assert.strictEqual(yield* lock.endWrite(a), -1)
    assert.strictEqual(yield* lock.endRead(b), -1)
    assert.strictEqual(yield* lock.endWrite("x:1", ""), 1)
    assert.isTrue(isGranted(yield* lock.write(c, 1)))
    assert.strictEqual(yield* lock.endWrite(c, ""), 1)
    assert.isTrue(isGranted(yield* lock.read(d, 1)))
    assert.strictEqual(yield* lock.endRead(d), 1)
    assert.deepStrictEqual(yield* lock.state, [])
    for (const { isSilent } of hears) assert.isTrue(yield* isSilent)
  })

  for (const side of ["read", "write"] as const) {
    test(`a release of the ${side} lock that finds it free hands it over: the release before had told nobody`, function* () {
      const store = yield* LockStore.LockStore
      const lock = lockIn(store)
      yield* lock.listen(`:${clientA}`)
      yield* lock.tryWrite("x:1")
      yield* lock.write(a)
      assert.strictEqual(yield* lock.endWrite("x:1", ""), 1)
      assert.deepStrictEqual(yield* lock.state, [])
      assert.strictEqual(yield* (side === "read" ? lock.endRead : lock.endWrite)("x:2"), 0)
      assert.deepStrictEqual(yield* lock.state, ["write", `${a}:write`])
    })
  }

  for (const side of ["read", "write"] as const) {
    /** Somebody holds this side, and a writer that is not handed the lock has waited longest. */
    const heldIn = Effect.fnUntraced(function* (store: Parameters<typeof lockIn>[0]) {
      const lock = lockIn(store)
      yield* (side === "read" ? lock.tryRead : lock.tryWrite)("x:1")
      yield* lock.writeUnder(b, clientB)
      return { lock, end: side === "read" ? lock.endRead : lock.endWrite }
    })

    test(`the release of the ${side} lock passes over a writer of a client that is not handed the lock`, function* () {
      const store = yield* LockStore.LockStore
      const { end, lock } = yield* heldIn(store)
      yield* lock.write(a)
      const hearsA = yield* lock.listen(`:${clientA}`)
      assert.strictEqual(yield* end("x:1"), 1)
      assert.match(yield* hearsA.message, handedOver("write"))
      assert.deepStrictEqual(yield* lock.state, ["write", `${a}:write`])
    })

    test(`the release of the ${side} lock wakes everybody if only writers wait that are not handed the lock`, function* () {
      const store = yield* LockStore.LockStore
      const { end, lock } = yield* heldIn(store)
      const all = yield* lock.listen("")
      yield* lock.listen(":ours")
      assert.strictEqual(yield* end("x:1"), 2)
      assert.strictEqual(yield* all.message, side === "read" ? "0" : "1")
      assert.deepStrictEqual(yield* lock.state, [])
      assert.isTrue(isGranted(yield* lock.writeUnder(b, clientB)))
    })

    test(`a release of the ${side} lock that finds it free passes over a writer that is not handed the lock`, function* () {
      const store = yield* LockStore.LockStore
      const { end, lock } = yield* heldIn(store)
      yield* lock.write(a)
      yield* lock.listen(`:${clientA}`)
      assert.strictEqual(yield* end("x:1", ""), 1)
      assert.deepStrictEqual(yield* lock.state, [])
      assert.strictEqual(yield* end("x:2"), 0)
      assert.deepStrictEqual(yield* lock.state, ["write", `${a}:write`])
    })
  }

  test("a writer that is not handed the lock keeps its place, and later readers out, while others read", function* () {
    const store = yield* LockStore.LockStore
    const lock = lockIn(store)
    yield* lock.tryWrite("x:1")
    yield* lock.read(a)
    yield* lock.writeUnder(b, clientB)
    yield* lock.read(c)
    for (const client of [clientA, clientC]) yield* lock.listen(`:${client}`)
    assert.strictEqual(yield* lock.endWrite("x:1"), 1)
    assert.deepStrictEqual(yield* lock.state, ["read", a])
    assert.isFalse(isGranted(yield* lock.read(d)))
    // nothing but that place is left before the reader
    assert.strictEqual(yield* lock.endRead(a), 1)
    assert.deepStrictEqual(yield* lock.state, ["read", c])
  })

  /** A lock that a listener without a place is told of: Java, which listens to its channel alone. */
  const besideJava = Effect.fnUntraced(function* (store: Store) {
    const lock = lockIn(store)
    const elsewhere = yield* storeOf(layer)
    const java = yield* lock.listen("", where === "memory" ? store : elsewhere)
    return { java, lock }
  })

  for (const side of ["read", "write"] as const) {
    const end = ({ endRead, endWrite }: ReturnType<typeof lockIn>) => (side === "read" ? endRead : endWrite)
    const enter = ({ tryRead, tryWrite }: ReturnType<typeof lockIn>) => (side === "read" ? tryRead : tryWrite)

    test(`the release of the ${side} lock wakes listeners that take no places, and tells clients that do first`, function* () {
      const store = yield* LockStore.LockStore
      const { java, lock } = yield* besideJava(store)
      yield* lock.listen("")
      const ours = yield* lock.listen(":ours")
      const hearsA = yield* lock.listen(`:${clientA}`)
      yield* enter(lock)("x:1")
      yield* lock.write(a)
      assert.strictEqual(yield* end(lock)("x:1"), 1 + 2)
      assert.strictEqual(yield* java.message, side === "read" ? "0" : "1")
      assert.include(["10", "50", "250"], yield* ours.message)
      assert.deepStrictEqual(yield* lock.state, [])
      assert.isTrue(yield* hearsA.isSilent)
    })

    test(`a ${side === "read" ? "reader" : "writer"} that gives up during the turn of others does not end it`, function* () {
      const store = yield* LockStore.LockStore
      const { lock } = yield* besideJava(store)
      yield* lock.listen(`:${clientA}`)
      const giveUpInTheirTurn = Effect.gen(function* () {
        yield* enter(lock)("x:1")
        yield* lock.write(a)
        yield* end(lock)("x:1")
        yield* end(lock)(b)
        // Java asks as it always does
        const isJavas = isGranted(yield* lock.tryWrite("java:1"))
        for (const owner of ["java:1", a]) yield* lock.endWrite(owner, "")
        // or this machine was late, or there was no turn: once more
        return isJavas
      })
      yield* until("the lock was left to the others", giveUpInTheirTurn)
    })

    test(`after a release of the ${side} lock in the turn of others, clients that take places are refused`, function* () {
      const store = yield* LockStore.LockStore
      const { lock } = yield* besideJava(store)
      const askInTheirTurn = Effect.gen(function* () {
        yield* enter(lock)("x:1")
        yield* end(lock)("x:1")
        const replies = [yield* lock.write(a), yield* lock.read(b)]
        const isInTheirTurn = (reply: unknown) => !isGranted(reply) && (reply as readonly [number, string])[1] === ""
        if (!replies.every(isInTheirTurn)) {
          // this machine was late, or there was no turn: once more
          yield* lock.endWrite(a, "")
          yield* lock.endRead(b, "")
          return false
        }
        for (const reply of replies) {
          const [left] = reply as readonly [number, string]
          assert.isTrue(left > 0 && left <= 250, `${left} ms left`)
        }
        return true
      })
      yield* until("requests within the turn", askInTheirTurn)
      // Java asks as it always does
      assert.isTrue(isGranted(yield* lock.tryWrite("java:1")))
      yield* lock.endWrite("java:1", "")
      yield* until("the turn is over", Effect.map(lock.write(a, 1), isGranted))
      assert.deepStrictEqual(yield* lock.state, ["write", `${a}:write`])
    })
  }
}
