/**
 * How grants wait for replicas, over a driver whose servers answer what a test wants.
 */
import { fakeDriver } from "../kit/fakeDriver.ts"
import { assert } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Lock, LockNotReplicated, RedisDriver, RedisLock, type StoreReason } from "effect-redis-lock"
import { failure, storeError } from "../kit/exits.ts"
import { testLive } from "../kit/test.ts"

type Command = ReadonlyArray<string | number>

const unreachable = new RedisDriver.RedisDriverError({ reason: "NotConnected", cause: new Error("no connection") })

const info = (online: number) =>
  [
    "role:master",
    ...Array.from({ length: online }, (_, i) => `slave${i}:ip=::1,port=${i},state=online,offset=1,lag=0`)
  ].join("\r\n")

type Answers = Effect.Effect<
  ReadonlyArray<RedisDriver.Reply | RedisDriver.RedisDriverError>,
  RedisDriver.RedisDriverError
>

/** A client of a server that grants everything. `wait` answers commands that block, and the scripts before them. */
const site = Effect.fnUntraced(function* (
  wait: (commands: ReadonlyArray<Command>) => Answers,
  acknowledge: Lock.AcquireOptions["acknowledge"]
) {
  const scripts: Array<string> = []
  const waits: Array<ReadonlyArray<Command>> = []
  const driver = fakeDriver({
    eval: (script) =>
      Effect.sync(() => {
        scripts.push(script.name)
        return 1
      }),
    server: () => "server#1",
    sendBlocking: (_, commands) =>
      Effect.suspend(() => {
        waits.push(commands)
        return wait(commands)
      })
  })
  const layer = RedisLock.layer({ acknowledge: acknowledge === "none" ? undefined : acknowledge }).pipe(
    Layer.provide(driver)
  )
  const context = yield* Layer.build(layer)
  return {
    scripts,
    /** The names of the commands that were sent together each time. */
    get waits() {
      return waits.map((commands) =>
        commands.map(([name, ...args]) => (name === "EVAL" ? "EVAL" : [name, ...args].join(" ")))
      )
    },
    run: <A, E>(self: Effect.Effect<A, E, RedisLock.RedisLock>) => Effect.provideContext(self, context)
  }
})

/** What a master has, and may have another time. */
interface Master {
  /** How many replicas are online. */
  online: number
  /** How many of them acknowledge. */
  acknowledged: number
  /** Whether it has the grants that are to be confirmed. Default: true. */
  readonly hasGrants?: boolean
}

/** Answers as this master would at that moment. */
const answersOf = (master: Master) => (commands: ReadonlyArray<Command>) =>
  Effect.sync(() =>
    commands.map(([name, , keys]): RedisDriver.Reply => {
      if (name === "EVAL") return Array.from({ length: Number(keys) }, () => (master.hasGrants === false ? 0 : 1))
      if (name === "INFO") return info(master.online)
      return master.acknowledged
    })
  )

const section = Lock.withLock(Effect.succeed("done"), "a", { waitTime: 0 })

testLive(
  "A grant is confirmed and waited for before the section begins, and one that is not acknowledged is released",
  function* () {
    const master: Master = { online: 2, acknowledged: 2 }
    const { run, scripts } = yield* site(answersOf(master), { replicas: 2 })
    assert.deepStrictEqual(scripts, [])
    assert.strictEqual(yield* run(section), "done")
    assert.deepStrictEqual(scripts, ["lock/acquire", "lock/release"])
    master.acknowledged = 1
    const error = storeError(yield* Effect.exit(run(section)))
    assert.instanceOf(error.cause, LockNotReplicated)
    assert.include(error.cause, { lock: "a", wanted: 2, acknowledged: 1 })
    assert.isFalse(error.isTransient)
    assert.deepStrictEqual(scripts.slice(2), ["lock/acquire", "lock/release"])
  }
)

testLive(
  "The commands that are sent together: the check of the server first, then for each grant a confirmation and the wait",
  function* () {
    const all = yield* site(answersOf({ online: 2, acknowledged: 2 }), { replicas: "all", within: 700 })
    yield* all.run(section)
    assert.deepStrictEqual(all.waits, [
      ["INFO replication", "WAIT 0 1"],
      ["EVAL", "INFO replication", "WAIT 2 700"]
    ])
    const two = yield* site(answersOf({ online: 2, acknowledged: 2 }), { replicas: 2 })
    yield* two.run(section)
    assert.deepStrictEqual(two.waits, [["WAIT 0 1"], ["EVAL", "WAIT 2 500"]])
  }
)

testLive("All replicas are those that are online, and at least one", function* () {
  const master: Master = { online: 3, acknowledged: 3 }
  const { run } = yield* site(answersOf(master), { replicas: "all" })
  master.online = master.acknowledged = 1
  assert.strictEqual(yield* run(section), "done")
  master.online = master.acknowledged = 0
  const { cause } = storeError(yield* Effect.exit(run(section)))
  assert.instanceOf(cause, LockNotReplicated)
  assert.include(cause, { wanted: 1, acknowledged: 0 })
})

testLive("A replica that came online since it was counted is waited for by a second wait", function* () {
  let online = 1
  let asked = 0
  const { run } = yield* site(
    (commands) =>
      Effect.sync(() =>
        commands.map(([name, count]): RedisDriver.Reply => {
          if (name === "EVAL") return [1]
          if (name === "INFO") return info(online)
          asked = Number(count)
          return asked
        })
      ),
    { replicas: "all" }
  )
  online = 2
  assert.strictEqual(yield* run(section), "done")
  assert.strictEqual(asked, 2)
})

testLive("A server that does not have the grant confirms nothing, whatever its replicas acknowledge", function* () {
  const { run, scripts } = yield* site(answersOf({ online: 2, acknowledged: 2, hasGrants: false }), {
    replicas: "all"
  })
  const error = storeError(yield* Effect.exit(run(section)))
  assert.strictEqual(error.reason, "ConnectionLost")
  assert.include(error.message, "another one has taken over")
  assert.deepStrictEqual(scripts, ["lock/acquire", "lock/release"])
})

testLive(
  "If the connection that waits cannot be had, nothing is acquired; if it fails after the grant, the grant is undone",
  function* () {
    let fails = true
    const answers = answersOf({ online: 1, acknowledged: 1 })
    const { run, scripts } = yield* site((commands) => (fails ? Effect.fail(unreachable) : answers(commands)), {
      replicas: 1
    })
    assert.strictEqual(storeError(yield* Effect.exit(run(section))).reason, "NotConnected")
    assert.deepStrictEqual(scripts, [])
    fails = false
    yield* run(section)
    fails = true
    const error = storeError(yield* Effect.exit(run(section)))
    assert.isTrue(error.isTransient)
    assert.deepStrictEqual(scripts.slice(2), ["lock/acquire", "lock/release"])
  }
)

for (const [reason, refusal] of [
  ["NotAuthenticated", (error) => Effect.fail(error)],
  ["OutOfMemory", (error, answers) => Effect.map(answers, (replies) => [error, ...replies.slice(1)])]
] as ReadonlyArray<readonly [StoreReason, (error: RedisDriver.RedisDriverError, answers: Answers) => Answers]>) {
  testLive(`A grant whose confirmation is refused is undone, and fails for that reason: ${reason}`, function* () {
    let refuses = false
    const answers = answersOf({ online: 1, acknowledged: 1 })
    const error = new RedisDriver.RedisDriverError({ reason, cause: new Error("refused") })
    const { run, scripts } = yield* site(
      (commands) => (refuses ? refusal(error, answers(commands)) : answers(commands)),
      { replicas: 1 }
    )
    yield* run(section)
    refuses = true
    // a waiter as well: it would be refused again and again
    const refused = storeError(yield* Effect.exit(run(Lock.withLock(Effect.void, "a"))))
    assert.include(refused, { reason, isTransient: false, isOutcomeUnknown: true })
    assert.deepStrictEqual(scripts.slice(2), ["lock/acquire", "lock/release"])
  })
}

testLive(
  "A lock may need nothing where its client does, and a client without the option sends nothing that waits",
  function* () {
    const strict = yield* site(answersOf({ online: 0, acknowledged: 0 }), { replicas: 1 })
    yield* strict.run(Lock.withLock(Effect.void, "a", { acknowledge: "none" }))
    assert.deepStrictEqual(strict.waits, [])
    const plain = yield* site(answersOf({ online: 0, acknowledged: 0 }), "none")
    yield* plain.run(section)
    assert.deepStrictEqual(plain.waits, [])
    const error = failure(
      yield* Effect.exit(plain.run(Lock.withLock(Effect.void, "a", { acknowledge: { replicas: 1 } })))
    )
    assert.propertyVal(error, "_tag", "LockStoreError")
  }
)
