/**
 * Whom a release of permits tells, and for whom permits are kept, asked of the stores directly.
 */
import { storeOf } from "../kit/testStore.ts"
import { assert } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { LockStore } from "effect-redis-lock"
import { stores } from "../kit/stores.ts"
import { testsWith, titled } from "../kit/test.ts"
import { eventually, until } from "../kit/eventually.ts"
import type { Store } from "../kit/wrappedStore.ts"
import { allHeard, clientId, listenTo, typeOfKeyIn } from "../kit/storeOperations.ts"
import { semaphores } from "./suite/permitPlaces.ts"

const [clientA, clientB, clientC] = ["a", "b", "c"].map(clientId) as [string, string, string]

for (const [where, layer] of Object.entries(stores)) {
  for (const [kind, make] of Object.entries(semaphores)) {
    const test = titled(`${kind} on ${where}`, testsWith(layer))

    /** A semaphore all of whose permits are held, `held` in one grant. */
    const site = Effect.fnUntraced(function* (held: number) {
      const store = yield* LockStore.LockStore
      const semaphore = make(store, held)
      const { grant, isGranted } = yield* semaphore.ask("holder", { wanted: held })
      assert.isTrue(isGranted)
      /** What comes from now on. */
      const listen = (suffix: string, from: Store = store) =>
        Effect.map(listenTo(from, semaphore.channel + suffix), ({ heard }) => heard)
      /** Whether a free permit is kept from somebody who comes by. */
      const isKept = Effect.gen(function* () {
        const { free, grant, isGranted } = yield* semaphore.ask("barger", { ifDenied: 0 })
        if (isGranted) yield* semaphore.giveBack(grant, 1)
        else assert.strictEqual(free, 0)
        return !isGranted
      })
      return { ...semaphore, store, grant, listen, isKept }
    })

    test("a release tells the clients with the oldest places, as many as it has permits for, and nobody else", function* () {
      const { add, ask, giveBack, grant, listen, store } = yield* site(2)
      const [all, a, b, c] = [
        yield* listen(""),
        yield* listen(`:${clientA}`),
        yield* listen(`:${clientB}`),
        yield* listen(`:${clientC}`)
      ]
      // they take places
      yield* listen(":ours")
      for (const client of [clientA, clientB, clientC]) assert.isFalse((yield* ask(client)).isGranted)
      yield* giveBack(grant, 2)
      yield* until("A and B are told", () => a.length > 0 && b.length > 0)
      // who was told and is on the way is not told again, and has its permits
      yield* add(1)
      yield* until("C is told", () => c.length > 0)
      yield* allHeard(store)
      assert.deepStrictEqual([a.length, b.length, c.length, all.length], [1, 1, 1, 0])
      for (const client of [clientC, clientB, clientA]) assert.isTrue((yield* ask(client, { waits: true })).isGranted)
    })

    test("a release passes over a client that wants more than there is, and one that does not listen", function* () {
      const { add, ask, listen, store } = yield* site(3)
      const [a, c] = [yield* listen(`:${clientA}`), yield* listen(`:${clientC}`)]
      yield* ask(clientA, { wanted: 3 })
      yield* ask(clientB)
      yield* ask(clientC)
      yield* add(1)
      yield* until("C is told", () => c.length > 0)
      yield* allHeard(store)
      assert.lengthOf(a, 0)
    })

    test("a client that was told, and finds its permits taken, keeps its place ahead of others", function* () {
      const { add, ask, giveBack, listen, store } = yield* site(1)
      const [a, b] = [yield* listen(`:${clientA}`), yield* listen(`:${clientB}`)]
      yield* ask(clientA)
      yield* ask(clientB)
      yield* add(1)
      yield* until("A is told", () => a.length === 1)
      const { grant, isGranted } = yield* ask("barger", { ifDenied: 0 })
      // this machine may have been so slow that the permit is kept for A
      if (isGranted) {
        assert.isFalse((yield* ask(clientA, { waits: true })).isGranted)
        yield* giveBack(grant)
        yield* until("A is told again", () => a.length === 2)
      }
      yield* allHeard(store)
      assert.lengthOf(b, 0)
    })

    test("a permit is kept for the oldest place after 100 ms, whoever else asks", function* () {
      const { add, ask, isKept, listen } = yield* site(1)
      yield* listen(`:${clientA}`)
      yield* ask(clientA)
      yield* ask(clientB)
      yield* add(1)
      yield* until("the permit is kept", isKept)
      assert.isFalse((yield* ask(clientB, { waits: true })).isGranted)
      assert.isTrue((yield* ask(clientA, { waits: true })).isGranted)
      assert.isFalse((yield* ask(clientA)).isGranted)
    })

    test("a permit is kept for the next place where the oldest wants more than there are", function* () {
      const { ask, giveBack, grant, isKept, listen } = yield* site(1)
      yield* listen(`:${clientA}`)
      const b = yield* listen(`:${clientB}`)
      yield* ask(clientA, { wanted: 2 })
      yield* ask(clientB)
      yield* giveBack(grant, 1)
      yield* until("B is told", () => b.length === 1)
      yield* until("the permit is kept", isKept)
      assert.isTrue((yield* ask(clientB, { waits: true })).isGranted)
    })

    test("a permit that is kept for a place is kept from other clients, also where their own places are older and want more than there are", function* () {
      const { add, ask, isKept, listen } = yield* site(1)
      yield* listen(`:${clientB}`)
      yield* ask(clientA, { wanted: 2 })
      yield* ask(clientB)
      yield* add(1)
      yield* until("the permit is kept", isKept)
      assert.isFalse((yield* ask(clientA, { ifDenied: 0 })).isGranted)
      assert.isTrue((yield* ask(clientB, { waits: true })).isGranted)
    })

    test("a permit that is kept for a client is not given to its newcomers", function* () {
      const { add, ask, isKept, listen } = yield* site(1)
      yield* listen(`:${clientA}`)
      yield* ask(clientA)
      yield* add(1)
      yield* until("the permit is kept", isKept)
      assert.isFalse((yield* ask(clientA, { ifDenied: 0 })).isGranted)
      assert.isTrue((yield* ask(clientA, { waits: true })).isGranted)
    })

    test("a newcomer that wants fewer permits than others of its client is not told before older places", function* () {
      const { add, ask, listen, store } = yield* site(2)
      const [a, b] = [yield* listen(`:${clientA}`), yield* listen(`:${clientB}`)]
      yield* ask(clientA, { wanted: 2 })
      yield* ask(clientB)
      yield* ask(clientA)
      yield* add(1)
      yield* until("one of them is told", () => a.length + b.length > 0)
      yield* allHeard(store)
      assert.deepStrictEqual([a.length, b.length], [0, 1])
    })

    test("a client whose other fibers wait has a new place when one is granted permits", function* () {
      const { add, ask, listen } = yield* site(1)
      const [a, b] = [yield* listen(`:${clientA}`), yield* listen(`:${clientB}`)]
      yield* ask(clientA)
      yield* ask(clientB)
      yield* add(1)
      yield* until("A is told", () => a.length === 1)
      assert.isTrue((yield* ask(clientA, { waits: true, ifGranted: 1 })).isGranted)
      yield* add(1)
      yield* until("B is told", () => b.length === 1)
      yield* add(1)
      yield* until("A is told again", () => a.length === 2)
    })

    test("a request for many permits does not hide that others of its client wait for few", function* () {
      const { add, ask, listen, store } = yield* site(3)
      const [a, b] = [yield* listen(`:${clientA}`), yield* listen(`:${clientB}`)]
      yield* ask(clientA)
      yield* ask(clientA, { wanted: 3 })
      yield* ask(clientB)
      yield* add(1)
      yield* until("one of them is told", () => a.length + b.length > 0)
      yield* allHeard(store)
      assert.deepStrictEqual([a.length, b.length], [1, 0])
    })

    for (const isDead of [true, false]) {
      test(`a permit is not kept for long for a client that is ${isDead ? "dead" : "stopped"}`, function* () {
        const { add, ask, isKept, listen } = yield* site(1)
        const scope = yield* Scope.make()
        const a = yield* Scope.provide(listen(`:${clientA}`), scope)
        // its place stays older than that of B, which says later for how long it has waited
        yield* ask(clientA, { waits: true })
        yield* ask(clientB)
        yield* add(1)
        yield* until("A is told", () => a.length === 1)
        yield* until("the permit is kept for A", isKept)
        if (isDead) yield* Scope.close(scope, Exit.void)
        const asksAgain = Effect.map(ask(clientB, { waits: true }), ({ isGranted }) => isGranted)
        yield* until("B is granted it", asksAgain)
        yield* Scope.close(scope, Exit.void)
      })
    }

    test("a client that gives up its place leaves free permits to the next", function* () {
      const { add, ask, leave, listen } = yield* site(1)
      const [a, b] = [yield* listen(`:${clientA}`), yield* listen(`:${clientB}`)]
      yield* ask(clientA)
      yield* ask(clientB)
      yield* add(1)
      yield* until("A is told", () => a.length === 1)
      assert.lengthOf(b, 0)
      assert.strictEqual(yield* leave(clientA), 1)
      yield* until("B is told", () => b.length === 1)
      assert.strictEqual(yield* leave(clientA), 0)
    })

    if (kind === "PermitSemaphore") {
      test("a request that takes one of several permits whose leases have ended tells who waits of the others", function* () {
        const { add, ask, endLeases, grant, listen } = yield* site(2)
        const a = yield* listen(`:${clientA}`)
        yield* ask(clientA)
        yield* endLeases(grant)
        assert.isTrue((yield* ask("barger", { ifDenied: 0 })).isGranted)
        yield* add(1)
        yield* until("A is told", () => a.length > 0)
        // of the one that was left, before there was another
        assert.strictEqual(a[0], "1")
      })
    }

    test("a request for many permits gets them though others ask for few without a pause", function* () {
      const { ask, giveBack, listen, grant } = yield* site(4)
      const a = yield* listen(`:${clientA}`)
      yield* ask(clientA, { wanted: 4 })
      yield* giveBack(grant, 4)
      yield* until("A is told", () => a.length === 1)
      // at least one permit is held at any time, as long as that is possible
      let last = yield* ask("barger", { ifDenied: 0 })
      assert.isTrue(last.isGranted)
      assert.isFalse((yield* ask(clientA, { wanted: 4, waits: true })).isGranted)
      const isServed = Effect.gen(function* () {
        const next = yield* ask("barger", { ifDenied: 0 })
        if (last.isGranted) yield* giveBack(last.grant, 1)
        last = next
        return (yield* ask(clientA, { wanted: 4, waits: true })).isGranted
      })
      yield* until("A has all four", isServed)
    })

    test("listeners that take no places hear of every release, and have their turn", function* () {
      const { add, ask, listen, store } = yield* site(1)
      const elsewhere = yield* storeOf(layer)
      const java = yield* listen("", where === "memory" ? store : elsewhere)
      const a = yield* listen(`:${clientA}`)
      yield* ask(clientA)
      let turns = 0
      const seesTurn = Effect.gen(function* () {
        yield* add(1)
        const { isGranted, left } = yield* ask(clientA, { waits: true, ifGranted: 1 })
        if (!isGranted) {
          turns++
          assert.isTrue(left > 0 && left <= 250, `${left} ms left`)
          yield* until(
            "the turn is over",
            Effect.map(ask(clientA, { waits: true, ifGranted: 1 }), (it) => it.isGranted)
          )
        }
        return turns === 2
      })
      yield* until("others have had two turns", seesTurn)
      yield* until("they have heard of both", () => java.length >= 2)
      assert.isTrue(
        java.every((message) => message === "01"),
        java.join()
      )
      yield* until("A has heard of both", () => a.length >= 2)
    })

    test("after the last place no key is left but for a moment, also where there was a turn", function* () {
      const { add, ask, key, leave, listen, store } = yield* site(1)
      const elsewhere = yield* storeOf(layer)
      yield* listen("", where === "memory" ? store : elsewhere)
      yield* listen(`:${clientA}`)
      const wants = `effect_redis_lock_permit_wants:{${key}}`
      const isGone = Effect.map(typeOfKeyIn(store, wants), (type) => type === "none")
      // denied while it is the turn of others
      const served = until(
        "it is served",
        Effect.map(ask(clientA, { waits: true }), (it) => it.isGranted)
      )
      for (const end of [leave(clientA), served]) {
        yield* ask(clientA, { wanted: 2 })
        yield* add(1)
        assert.isFalse(yield* isGone)
        yield* end
        // it would be there for a minute
        yield* eventually("it is gone", isGone, (gone) => gone, "20 seconds")
      }
    })
  }
}
