/**
 * Both seams have one primitive for asking and one for listening. What an application puts in their place is what runs, also where
 * the primitive of the driver or store below could be started without a fiber.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { assert } from "@effect/vitest"
import { Effect, Fiber, Layer, Stream } from "effect"
import { Lock, LockStore, RedisDriver, RedisLock } from "effect-redis-lock"
import { sectionUntilTold } from "../kit/sections.ts"
import { redisUrl } from "../kit/server/redisUrl.ts"
import { changedStore, wrappedStore } from "../kit/wrappedStore.ts"
import { testLive } from "../kit/test.ts"

/** What passed through the wrappers of a client: one for its server, or one for each member of its quorum. */
class Passed {
  readonly operations: Array<string> = []
  readonly signals: Array<string> = []
  #requestsInFlight = 0
  /** What each member was asked, and heard to say, in this order. */
  readonly #seen = new Map<number, Array<string>>()

  #note(member: number, event: string): void {
    const seen = this.#seen.get(member) ?? []
    this.#seen.set(member, [...seen, event])
  }

  ask<A, E>(member: number, operation: string, self: Effect.Effect<A, E>): Effect.Effect<A, E> {
    return Effect.suspend(() => {
      this.#requestsInFlight++
      this.#note(member, operation)
      return self
    }).pipe(
      Effect.tap(() => Effect.sync(() => this.operations.push(operation))),
      Effect.ensuring(Effect.sync(() => this.#requestsInFlight--))
    )
  }

  listen<E>(member: number, self: Stream.Stream<RedisDriver.Signal, E>): Stream.Stream<RedisDriver.Signal, E> {
    return Stream.tap(self, ({ _tag }) =>
      Effect.sync(() => {
        this.signals.push(_tag)
        this.#note(member, _tag)
      })
    )
  }

  /** Whether every member has subscribed and has answered a request that followed. */
  #isDeniedEverywhere(members: number): boolean {
    const askedAgain = (seen: ReadonlyArray<string>) =>
      seen.includes("Subscribed") && seen.lastIndexOf("lock/acquire") > seen.lastIndexOf("Subscribed")
    return this.#seen.size === members && this.#requestsInFlight === 0 && [...this.#seen.values()].every(askedAgain)
  }

  /**
   * Waits until the client sleeps until a message comes. It asks again after each member's Subscribed; that signal is noted here a few
   * turns of the event loop before it reaches the client, which must not have asked meanwhile.
   */
  sleeps(members: number): Effect.Effect<void> {
    const turn = Effect.promise(() => new Promise((resume) => setImmediate(resume)))
    return Effect.gen({ self: this }, function* () {
      for (let turns = 0; turns < 50;) {
        yield* turn
        turns = this.#isDeniedEverywhere(members) ? turns + 1 : 0
      }
    })
  }
}

const driver = (database: number) => IoRedis.layer({ url: `${redisUrl}/${database}` })

const driverBehind = (passed: Passed, database: number) =>
  Layer.effect(
    RedisDriver.RedisDriver,
    Effect.map(RedisDriver.RedisDriver, (below) => ({
      ...below,
      eval: (script: RedisDriver.RedisScript, ...rest: [ReadonlyArray<string>, ReadonlyArray<string | number>]) =>
        passed.ask(database, script.name, below.eval(script, ...rest)),
      subscribe: (channel: string) => passed.listen(database, below.subscribe(channel))
    }))
  ).pipe(Layer.provide(driver(database)))

const storeBehind = (passed: Passed, database: number) =>
  changedStore((below) => ({
    ...wrappedStore(below, ({ operation, run }) => passed.ask(database, operation, run())),
    subscribe: (channel) => passed.listen(database, below.subscribe(channel))
  })).pipe(Layer.provide(LockStore.layerRedis), Layer.provide(driver(database)))

// only a message can end a wait
const options = { fallbackInterval: "1 hour" } as const

const seams = {
  "RedisDriver.eval and subscribe": (passed: Passed, database: number) =>
    RedisLock.layer(options).pipe(Layer.provide(driverBehind(passed, database))),
  "LockStore.run and subscribe": (passed: Passed, database: number) =>
    RedisLock.layerFromStore(options).pipe(Layer.provide(storeBehind(passed, database)))
}

for (const [seam, clientOver] of Object.entries(seams)) {
  const clients = {
    "a lock on one server": { members: 1, client: (passed: Passed) => clientOver(passed, 0) },
    "a lock on a quorum": {
      members: 3,
      // a database of its own for each member: they share no keys
      client: (passed: Passed) =>
        RedisLock.layerQuorum([1, 2, 3].map((database) => Layer.fresh(clientOver(passed, database))))
    }
  }
  for (const [kind, { client, members }] of Object.entries(clients)) {
    testLive(`what wraps ${seam} is asked and listened to by ${kind}`, function* () {
      const holder = new Passed()
      const waiter = new Passed()
      const lock = Lock.make(`seams:${crypto.randomUUID()}`)
      const held = yield* sectionUntilTold((body) =>
        Effect.provide(Lock.withLock(body, lock), Layer.fresh(client(holder)))
      )
      const waiting = yield* Effect.forkChild(
        Effect.void.pipe(Lock.withLock(lock), Effect.provide(Layer.fresh(client(waiter))))
      )
      yield* waiter.sleeps(members)
      assert.notInclude(waiter.signals, "Message")
      yield* held.end
      yield* Fiber.join(waiting)
      assert.includeMembers(holder.operations, ["lock/acquire", "lock/release"])
      assert.includeMembers(waiter.operations, ["lock/acquire", "lock/release"])
      assert.include(waiter.signals, "Message")
    })
  }
}
