import { IoRedis } from "@effect-redis-lock/ioredis"
import { RedisCluster, RedisServer } from "@effect-redis-lock/testing"
import { assert, describe } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Layer } from "effect"
import {
  FairLock,
  FencedLock,
  InvalidLockOptions,
  Lock,
  LockNotReplicated,
  MultiLock,
  NonReentrantLock,
  PermitSemaphore,
  ReadWriteLock,
  RedisDriver,
  RedisLock,
  Semaphore,
  SpinLock
} from "effect-redis-lock"
import type { Redis } from "ioredis"
import { readFileSync } from "node:fs"
import { vi } from "vitest"
import { client, clientOf, clientOver } from "../kit/clients.ts"
import { recording } from "../kit/connectionLog.ts"
import { freshName } from "../kit/names.ts"
import { bare } from "../kit/server/bareRedis.ts"
import { clusterClient, mastersOf, TheCluster } from "../kit/server/cluster.ts"
import { eventually, soon } from "../kit/eventually.ts"
import { failure, storeError } from "../kit/exits.ts"
import { holdUntilTold } from "../kit/sections.ts"
import { subscribers } from "../kit/server/conditions.ts"
import { commandsOf } from "../kit/server/commandsOf.ts"
import { isLasting } from "../kit/server/lastingKeys.ts"
import { replicated } from "../kit/server/replicated.ts"
import { withClosingSubscriptions } from "../kit/subscriptions.ts"
import { suitesOn, testLive, test } from "../kit/test.ts"

/** Long enough for any machine that answers at all. */
const patient = { replicas: "all", within: "2 minutes" } as const
const soonGivenUp = { replicas: "all", within: "100 millis" } as const

const notReplicated = (exit: Exit.Exit<unknown, unknown>): LockNotReplicated => {
  const error = storeError(exit)
  assert.strictEqual(error.reason, "NotReplicated", error.message)
  assert.instanceOf(error.cause, LockNotReplicated)
  return error.cause
}

type Use = <A, E>(body: Effect.Effect<A, E>) => Effect.Effect<A, unknown, RedisLock.RedisLock>

/** Every way to come to hold something under the name `a`. */
const ways: Record<string, Use> = {
  "a Lock": Lock.withLock("a"),
  "a FairLock": Lock.withLock(FairLock.make("a")),
  "a FencedLock": Lock.withLock(FencedLock.make("a")),
  "a SpinLock": Lock.withLock(SpinLock.make("a")),
  "a NonReentrantLock": Lock.withLock(NonReentrantLock.make("a")),
  "a read lock": Lock.withLock(ReadWriteLock.make("a").readLock),
  "a write lock": Lock.withLock(ReadWriteLock.make("a").writeLock),
  "a MultiLock": Lock.withLock(MultiLock.make(["a", "{a}b"].map((name) => Lock.make(name)))),
  "a Lock without tokens": Lock.withLock(Lock.make("a", { tokens: "none" })),
  "permits of a Semaphore": Semaphore.withPermits(Semaphore.make("a", { permits: 3 }), 2),
  "permits of a PermitSemaphore": PermitSemaphore.withPermits(PermitSemaphore.make("a", { permits: 3 }), 2)
}

/** Another name whose lock is on the same master of a cluster. */
const neighbourOf = Effect.fnUntraced(function* (cluster: RedisCluster.RedisCluster, lock: string) {
  const { owner } = yield* mastersOf(cluster, lock)
  for (let i = 0; ; i++) if ((yield* mastersOf(cluster, `other ${i}`)).owner === owner) return `other ${i}`
})

/** What the keys hold, apart from the last tokens and the counters of semaphores. */
const heldKeys = async (redis: { readonly keys: (pattern: string) => Promise<Array<string>> }) =>
  (await redis.keys("*")).filter((key) => !isLasting(key) && key !== "a" && !key.includes("places")).sort()

describe("grants that replicas acknowledge", () => {
  testLive(
    "Whatever is held is on every replica before the section begins, and nothing is held if a replica does not acknowledge it",
    function* () {
      const { master, replicas } = yield* replicated(2)
      const eager = yield* client(master.server, { acknowledge: patient, commandTimeout: "1 minute" })
      const strict = yield* client(master.server, { acknowledge: soonGivenUp })
      for (const [what, use] of Object.entries(ways)) {
        yield* eager.run(
          use(
            Effect.promise(async () => {
              const [wanted, ...found] = await Promise.all(
                [master, ...replicas].map(async ({ redis }) => [await redis.exists("a"), await heldKeys(redis)])
              )
              for (const keys of found) assert.deepStrictEqual(keys, wanted, what)
              assert.strictEqual(wanted![0], 1, what)
            })
          )
        )
        yield* replicas[1]!.server.pause
        const lost = notReplicated(yield* Effect.exit(strict.run(use(Effect.die("nobody may be inside")))))
        assert.include(lost, { lock: "a", wanted: 2 }, what)
        assert.isBelow(lost.acknowledged, 2, what)
        yield* replicas[1]!.server.resume
        yield* eventually(
          `${what} has left nothing behind`,
          async () => [
            await heldKeys(master.redis),
            await master.redis.type("a"),
            await master.redis.get("a").catch(() => "held")
          ],
          ([keys, type, value]) => (keys as Array<string>).length === 0 && (type === "none" || value === "3")
        )
        yield* Effect.promise(() => master.redis.del("a"))
      }
    }
  )

  testLive("With one of two replicas stopped, one acknowledgement suffices where one is wanted", function* () {
    const { master, replicas } = yield* replicated(2)
    const { run } = yield* client(master.server)
    yield* replicas[0]!.server.pause
    yield* run(Lock.withLock(Effect.void, "a", { acknowledge: { replicas: 1, within: "2 minutes" } }))
    const all = notReplicated(yield* Effect.exit(run(Lock.withLock(Effect.void, "a", { acknowledge: soonGivenUp }))))
    assert.strictEqual(all.wanted, 2)
    assert.isBelow(all.acknowledged, 2)
    const majority = notReplicated(
      yield* Effect.exit(
        run(Lock.withLock(Effect.void, "a", { acknowledge: { replicas: "majority", within: "100 millis" } }))
      )
    )
    assert.strictEqual(majority.wanted, 2)
    assert.isBelow(majority.acknowledged, 2)
    assert.match(majority.message, /[01] of the 2 replicas/)
    yield* replicas[0]!.server.resume
    yield* run(Lock.withLock(Effect.void, "a", { acknowledge: patient }))
  })

  testLive("A replica that is gone does not count among all, and without any replica nothing is granted", function* () {
    const { master, replicas } = yield* replicated(2)
    const { run } = yield* client(master.server)
    const use = (within: "2 minutes" | "100 millis") =>
      run(Lock.withLock(Effect.void, "a", { acknowledge: { replicas: "all", within } }))
    yield* use("2 minutes")
    yield* replicas[0]!.server.kill
    yield* eventually(
      "the master knows",
      () => master.redis.info("replication"),
      (info) => info.includes("connected_slaves:1")
    )
    // the wait for the one that has gone ends by itself; the other one may take longer on a busy machine
    yield* eventually("the other one suffices", Effect.exit(use("100 millis")), Exit.isSuccess)
    yield* replicas[1]!.server.kill
    yield* eventually(
      "the master knows",
      () => master.redis.info("replication"),
      (info) => info.includes("connected_slaves:0")
    )
    assert.include(notReplicated(yield* Effect.exit(use("100 millis"))), { wanted: 1, acknowledged: 0 })
  })

  const queues = {
    "a Lock": { lock: Lock.make("a"), waits: (redis: Redis) => subscribers(redis, "a", 1) },
    "a FairLock": {
      lock: FairLock.make("a"),
      waits: (redis: Redis) =>
        eventually(
          "it has its place",
          () => redis.llen("redisson_lock_queue:{a}"),
          (length) => length === 1
        )
    }
  }
  for (const [what, { lock, waits }] of Object.entries(queues)) {
    testLive(
      `A waiter for ${what} whose turn comes needs acknowledgement as well, and leaves nothing behind without it`,
      function* () {
        const { master, replicas } = yield* replicated(1)
        const holder = yield* client(master.server)
        const waiter = yield* client(master.server, { acknowledge: soonGivenUp })
        const section = yield* holdUntilTold((stay: (_: void) => Effect.Effect<void>) =>
          holder.run(Lock.withLock(stay(), lock))
        )
        const waiting = yield* Effect.forkScoped(waiter.run(Lock.withLock(Effect.die("inside"), lock)))
        yield* waits(master.redis)
        yield* replicas[0]!.server.pause
        yield* section.end
        const lost = notReplicated(yield* soon("the waiter gives up", Fiber.await(waiting)))
        assert.include(lost, { lock: "a", wanted: 1, acknowledged: 0 })
        yield* eventually(
          "nothing is left",
          async () => (await master.redis.keys("*")).filter((key) => !isLasting(key)),
          (keys) => keys.length === 0
        )
      }
    )
  }

  for (const [what, use] of Object.entries(ways).filter(([what]) => !what.startsWith("permits"))) {
    testLive(
      `A server that has taken over with a hand-over alone does not confirm a grant for longer: ${what}`,
      function* () {
        const { master } = yield* replicated(1)
        let isShortened = false
        const shorten = Effect.promise(async () => {
          isShortened = true
          for (const key of await master.redis.keys("*")) if (!isLasting(key)) await master.redis.pexpire(key, 1500)
        })
        const { run } = yield* clientOf(
          RedisLock.layer({ acknowledge: patient }).pipe(
            Layer.updateService(RedisDriver.RedisDriver, (driver) => ({
              ...driver,
              sendBlocking: (...args) =>
                Effect.suspend(() => {
                  const sent = driver.sendBlocking!(...args)
                  return isShortened || args[1][0]![0] !== "EVAL" ? sent : Effect.andThen(shorten, sent)
                })
            })),
            Layer.provide(IoRedis.layer({ url: master.server.url, connectTimeout: "1 minute" }))
          )
        )
        const left = yield* run(use(Effect.promise(() => master.redis.pttl("a"))))
        assert.isTrue(isShortened)
        assert.isAbove(left as number, 15_000)
      }
    )
  }

  testLive(
    "The locks stay in the database that the application has selected on its client, and their grants wait for replicas there",
    function* () {
      const { master } = yield* replicated(1)
      const shared = yield* bare(master.server)
      yield* Effect.promise(() => shared.select(3))
      const { run } = yield* clientOver(shared, { acknowledge: patient })
      assert.strictEqual(yield* run(Lock.withLock(Effect.succeed("in"), "a", { waitTime: 0 })), "in")
      // no lock goes along into another one: what is held here would be free there
      yield* Effect.promise(() => shared.select(4))
      const error = storeError(yield* Effect.exit(run(Lock.withLock(Effect.die("inside"), "a", { waitTime: 0 }))))
      assert.strictEqual(error.reason, "NotConnected")
      assert.include(error.message, "has selected database 4 on this connection, and the locks are in database 3")
      yield* Effect.promise(() => shared.select(3))
      assert.strictEqual(yield* run(Lock.withLock(Effect.succeed("in"), "a", { waitTime: 0 })), "in")
    }
  )

  testLive("A re-entry needs acknowledgement as well, and without it the outer hold stays as it is", function* () {
    const { master, replicas } = yield* replicated(1)
    const { run } = yield* client(master.server, { acknowledge: patient })
    for (const lock of [Lock.make("a"), ReadWriteLock.make("b").readLock, ReadWriteLock.make("c").writeLock]) {
      yield* run(
        Effect.gen(function* () {
          yield* replicas[0]!.server.pause
          const inner = Lock.withLock(Effect.die("inside"), lock, { acknowledge: soonGivenUp })
          notReplicated(yield* Effect.exit(inner))
          yield* Lock.withLock(Effect.void, lock, { acknowledge: "none" })
          yield* replicas[0]!.server.resume
          assert.isTrue(yield* (yield* Lock.currentHolding(lock)).isHeld)
          yield* Lock.withLock(Effect.void, lock)
        }).pipe(Lock.withLock(lock))
      )
    }
  })

  testLive(
    "While a grant waits for a replica, other locks of the same client are not held up; interrupted, it is undone",
    function* () {
      const { master, replicas } = yield* replicated(1)
      const { run } = yield* client(master.server)
      yield* run(Lock.withLock(Effect.void, "a", { acknowledge: patient }))
      yield* replicas[0]!.server.pause
      const waiting = yield* Effect.forkScoped(run(Lock.withLock(Effect.die("inside"), "a", { acknowledge: patient })))
      yield* eventually(
        "it waits",
        async () => (await master.redis.client("LIST")) as string,
        (clients) => / cmd=wait /.test(clients)
      )
      assert.strictEqual(yield* Effect.promise(() => master.redis.exists("a")), 1)
      yield* soon("another lock is acquired", run(Lock.withLock(Effect.void, "b")))
      yield* soon("the wait is interrupted", Fiber.interrupt(waiting))
      yield* eventually(
        "the grant is undone",
        () => master.redis.exists("a"),
        (count) => count === 0
      )
    }
  )

  testLive(
    "Who waits for a replica while the master becomes one itself goes on waiting, and is served by the next master",
    function* () {
      const { master, replicas } = yield* replicated(1)
      const { run } = yield* client(master.server, { acknowledge: patient })
      yield* run(Lock.withLock(Effect.void, "a"))
      const replica = replicas[0]!
      yield* replica.server.pause
      const waiting = yield* Effect.forkScoped(run(Lock.withLock(Effect.succeed("inside"), "a")))
      const waits = (is: boolean) =>
        eventually(
          is ? "it waits" : "it waits no more",
          async () => (await master.redis.client("LIST")) as string,
          (clients) => / flags=\w*b\w* .* cmd=wait /.test(clients) === is
        )
      yield* waits(true)
      yield* Effect.promise(() => master.redis.call("REPLICAOF", "127.0.0.1", "1"))
      yield* waits(false)
      const another = yield* client(master.server, { acknowledge: patient })
      const asked = storeError(yield* Effect.exit(another.run(Lock.withLock(Effect.void, "b", { waitTime: 0 }))))
      assert.isTrue(asked.isTransient, asked.message)
      yield* Effect.promise(() => master.redis.call("REPLICAOF", "NO", "ONE"))
      yield* replica.server.resume
      assert.strictEqual(yield* soon("the waiter is served", Fiber.join(waiting)), "inside")
    }
  )

  testLive(
    "Grants of one moment share their wait, and locks that need none send no more commands and open no connection",
    function* () {
      const { master } = yield* replicated(1)
      const { run } = yield* withClosingSubscriptions(1000)(client(master.server))
      const many = (acknowledge: Lock.AcquireOptions["acknowledge"]) =>
        run(
          Effect.forEach(
            Array.from({ length: 40 }, (_, i) => `lock ${i}`),
            (name) => Lock.withLock(Effect.void, name, { acknowledge }),
            {
              concurrency: "unbounded",
              discard: true
            }
          )
        )
      yield* many(undefined)
      const connections = async () =>
        ((await master.redis.client("LIST")) as string).split("\n").filter((line) => line.includes("cmd=")).length
      const before = yield* Effect.promise(connections)
      const plain = yield* commandsOf(master.redis, many(undefined))
      assert.isFalse(plain.commands.some((command) => / (?:wait|eval)$/.test(command)))
      assert.strictEqual(yield* Effect.promise(connections), before)
      yield* many(patient)
      const { commands } = yield* commandsOf(master.redis, many(patient))
      const waits = Number.parseInt(commands.find((command) => command.endsWith(" wait")) ?? "0", 10)
      assert.isAtLeast(waits, 1)
      assert.isBelow(waits, 20)
      assert.strictEqual(yield* Effect.promise(connections), before + 1)
    }
  )
})

describe("a requirement that cannot be met", () => {
  test("A store without replicas refuses the option before any command", function* () {
    const program = Lock.withLock(Effect.void, "a", { acknowledge: { replicas: 1 } })
    const error = failure(yield* Effect.exit(Effect.provide(program, RedisLock.layerMemory)))
    assert.instanceOf(error, InvalidLockOptions)
    const wrong = [
      [{ replicas: 0 }, "acknowledge.replicas"],
      [{ replicas: 1e21 }, "acknowledge.replicas"],
      [{ replicas: 1.5 }, "acknowledge.replicas"],
      [{ replicas: "some" }, "acknowledge.replicas"],
      [{ replicas: 1, within: 0 }, "acknowledge.within"],
      [1, "acknowledge"]
    ] as const
    for (const [acknowledge, option] of wrong) {
      const invalid = Lock.withLock(Effect.void, "a", { acknowledge: acknowledge as never })
      const refusal = failure(yield* Effect.exit(Effect.provide(invalid, RedisLock.layerMemory)))
      assert.instanceOf(refusal, InvalidLockOptions)
      assert.strictEqual(refusal.option, option)
    }
  })
})

testLive("A Redis user with the documented permissions may have its grants acknowledged", function* () {
  const readme = readFileSync(new URL("../../packages/ioredis/README.md", import.meta.url), "utf8")
  const rulesOf = (kind: string) =>
    new RegExp(`${kind}.*\\n?ACL SETUSER locks (.*(?:\\n {2}.*)*)`).exec(readme)![1]!.split(/\s+/)
  const { master } = yield* replicated(1)
  const [setInfo] = (yield* Effect.promise(() => master.redis.command("INFO", "client|setinfo"))) as [unknown]
  const rules = [
    ...(setInfo ? rulesOf("# Redis 7.2 or newer") : []),
    ...rulesOf("```\n"),
    ...rulesOf("# PermitSemaphore"),
    ...rulesOf("# The option `acknowledge`"),
    "+zincrby"
  ]
  yield* Effect.promise(() => master.redis.acl("SETUSER", "locks", "reset", ...rules))
  const at = { url: `redis://locks:secret@${master.server.host}:${master.server.port}` }
  const { run } = yield* client(at, { keyPrefix: "app:", acknowledge: patient })
  yield* run(Lock.withLock(Lock.withLock(Effect.void, "a"), "a"))
  yield* run(PermitSemaphore.withPermits(Effect.void, PermitSemaphore.make("b", { permits: 2 }), 1))
  const log = (yield* Effect.promise(() => master.redis.call("ACL", "LOG"))) as ReadonlyArray<Array<unknown>>
  // a 6.2 takes the name of ioredis, which it does not know how to keep, for something forbidden
  const isName = (entry: Array<unknown>) => setInfo === null && entry[entry.indexOf("object") + 1] === "client"
  assert.deepStrictEqual(
    log.filter((entry) => !isName(entry)),
    []
  )
})

/** Ends the other connections of the same client, and waits until this one is closed as well. */
const isClosedWithOthers = Effect.fnUntraced(function* (redis: Redis, id: unknown) {
  const ours = async () =>
    String(await redis.client("LIST"))
      .split("\n")
      .filter((line) => line.includes(" name=ours "))
      .map((line) => Number(/^id=(\d+)/.exec(line)![1]))
  const others = (yield* Effect.promise(ours)).filter((each) => each !== id)
  assert.isNotEmpty(others)
  yield* Effect.promise(() => Promise.all(others.map((each) => redis.client("KILL", "ID", each))))
  yield* eventually("the connection for grants is closed", ours, (open) => !open.includes(Number(id)))
})

const waitsOf = (clients: string) => /id=(\d+) .* cmd=wait /.exec(clients)?.[1]

testLive(
  "A connection on which a reply did not come in time is not used again, as it may still be blocked",
  function* () {
    const server = yield* RedisServer.start()
    const driver = yield* Layer.build(Layer.fresh(IoRedis.layer({ url: server.url })))
    const send = Context.get(driver, RedisDriver.RedisDriver).sendBlocking!
    // there is no replica
    const error = yield* Effect.flip(send("a", [["WAIT", 1, 0]], 1000))
    assert.include(String(error.cause), "timed out")
    assert.deepStrictEqual(yield* send("a", [["PING"]], 20_000), ["PONG"])
  }
)

testLive(
  "Connections for grants to a server that tells that it is a replica are not used again, nor are those that were idle",
  function* () {
    const server = yield* RedisServer.start()
    const driver = yield* Layer.build(Layer.fresh(IoRedis.layer({ url: server.url })))
    const send = Context.get(driver, RedisDriver.RedisDriver).sendBlocking!
    const id = Effect.map(send("a", [["CLIENT", "ID"]], 20_000), ([id]) => id)
    const both = Effect.all([id, id], { concurrency: "unbounded" })
    const before = yield* both
    const redis = yield* bare(server)
    yield* Effect.promise(() => redis.replicaof("127.0.0.1", 1))
    yield* send("a", [["SET", "a", 1], ["PING"]], 20_000)
    for (const later of yield* both) assert.notInclude(before, later)
  }
)

/** A driver over an application's client on the plain path, and the database in which it has grants confirmed. */
const onPlainPath = Effect.fnUntraced(function* (shared: Redis) {
  const driver = yield* Layer.build(Layer.fresh(IoRedis.fromClient(shared, { fastPath: false })))
  const send = Context.get(driver, RedisDriver.RedisDriver).sendBlocking!
  return Effect.map(send("a", [["CLIENT", "INFO"]], 20_000), ([info]) => / db=(\d+)/.exec(String(info))![1])
})

testLive(
  "Grants over an application's client are confirmed in the database that it had selected first, on the plain path",
  function* () {
    const server = yield* RedisServer.start()
    const shared = yield* bare(server)
    yield* Effect.promise(() => shared.select(3))
    const database = yield* onPlainPath(shared)
    assert.strictEqual(yield* database, "3")
    const redis = yield* bare(server)
    yield* Effect.promise(() => redis.call("CLIENT", "KILL", "TYPE", "normal"))
    yield* eventually(
      "the application is connected again",
      () => shared.ping(),
      (reply) => reply === "PONG"
    )
    assert.strictEqual(yield* database, "3")
    // ioredis takes no notice of it
    yield* Effect.promise(() => shared.call("SELECT", "4"))
    assert.strictEqual(yield* database, "3")
  }
)

testLive(
  "A connection for grants that was idle for twice the commandTimeout is not used again, as a NAT may have forgotten it",
  function* () {
    const server = yield* RedisServer.start()
    const driver = yield* Layer.build(Layer.fresh(IoRedis.layer({ url: server.url, commandTimeout: "1 hour" })))
    const send = Context.get(driver, RedisDriver.RedisDriver).sendBlocking!
    const id = Effect.map(send("a", [["CLIENT", "ID"]], 20_000), ([id]) => id)
    const first = yield* id
    assert.strictEqual(yield* id, first)
    const now = performance.now.bind(performance)
    const passed = vi.spyOn(performance, "now").mockImplementation(() => now() + 2 * 60 * 60 * 1000)
    yield* Effect.addFinalizer(() => Effect.sync(() => passed.mockRestore()))
    assert.notStrictEqual(yield* id, first)
    const redis = yield* bare(server)
    yield* eventually(
      "the idle one is closed",
      async () => String(await redis.client("LIST")),
      (clients) => !clients.includes(`id=${Number(first)} `)
    )
  }
)

testLive(
  "A connection on which grants wait is replaced when it breaks, and the log does not say that it is gone for good",
  function* () {
    const { master } = yield* replicated(1)
    const record = recording()
    yield* Effect.gen(function* () {
      const { run } = yield* client(master.server, { acknowledge: { replicas: 1, within: "2 minutes" } })
      yield* run(Lock.withLock(Effect.void, "a"))
      const clients = () => master.redis.client("LIST") as Promise<string>
      const id = waitsOf(yield* Effect.promise(clients))!
      yield* Effect.promise(() => master.redis.client("KILL", "ID", id))
      yield* eventually("it is gone", clients, (list) => waitsOf(list) === undefined)
      yield* run(Lock.withLock(Effect.void, "b"))
      assert.isDefined(waitsOf(yield* Effect.promise(clients)))
    }).pipe(Effect.provide(record.layer), Effect.scoped)
    assert.deepStrictEqual(record.logged(), [])
  }
)

testLive(
  "An idle connection for grants is closed when the one for commands is lost, as its address may lead elsewhere by then",
  function* () {
    const server = yield* RedisServer.start()
    const redis = yield* bare(server)
    const driver = yield* Layer.build(Layer.fresh(IoRedis.layer({ url: server.url, label: "ours" })))
    const send = Context.get(driver, RedisDriver.RedisDriver).sendBlocking!
    const [id] = yield* send("a", [["CLIENT", "ID"]], 20_000)
    yield* isClosedWithOthers(redis, id)
    assert.notDeepEqual(yield* send("a", [["CLIENT", "ID"]], 20_000), [id!])
  }
)

testLive(
  "On a cluster a waiter goes on at the new master when its slot is moved while its grant waits for replicas",
  function* () {
    const cluster = yield* RedisCluster.start({ replicas: 1 })
    const acknowledge = { replicas: 1, within: "2 minutes" } as const
    const { run } = yield* clusterClient(cluster, { acknowledge, commandTimeout: "1 minute" })
    const { owner, other, slot } = yield* mastersOf(cluster, "a")
    const redis = yield* bare(owner)
    const replicas = yield* Effect.promise(
      () => redis.call("ROLE") as Promise<[string, number, Array<[string, string]>]>
    )
    const replica = cluster.nodes.find(({ port }) => port === Number(replicas[2][0]![1]))!
    // its server is reached, and both locks are of that one
    yield* run(Lock.withLock(Effect.void, "a"))
    const neighbour = yield* neighbourOf(cluster, "a")
    yield* replica.pause
    const first = yield* Effect.forkScoped(run(Lock.withLock(Effect.void, neighbour)), { startImmediately: true })
    yield* eventually(
      "its grant waits",
      () => redis.info("clients"),
      (info) => info.includes("blocked_clients:1")
    )
    const second = yield* Effect.forkScoped(run(Lock.withLock(Effect.succeed("in"), "a")), { startImmediately: true })
    yield* eventually(
      "the other is granted, and is to wait next",
      () => redis.exists("a"),
      (held) => held === 1
    )
    yield* cluster.moveSlot(slot, other)
    yield* replica.resume
    yield* soon("the first one is in", Fiber.join(first))
    assert.strictEqual(yield* soon("the second one is in", Fiber.join(second)), "in")
  }
)

suitesOn(TheCluster.layer(), { excludeTestServices: true })("on a cluster", (test) => {
  test("An idle connection for grants to a node is closed when the one for commands to it is lost", function* () {
    const cluster = yield* TheCluster
    const nodes = { nodes: cluster.urls, connectTimeout: "1 minute", label: "ours" } as const
    const driver = yield* Layer.build(Layer.fresh(IoRedis.layerCluster(nodes)))
    const { sendBlocking, eval: evaluate } = Context.get(driver, RedisDriver.RedisDriver)
    const lock = freshName()
    const { owner } = yield* mastersOf(cluster, lock)
    // its connection for commands is opened when it is first needed
    yield* evaluate({ name: "test", sha1: "0".repeat(40), lua: "return 1" }, [lock], [])
    const [id] = yield* sendBlocking!(lock, [["CLIENT", "ID"]], 20_000)
    yield* isClosedWithOthers(yield* bare(owner), id)
  })
})
