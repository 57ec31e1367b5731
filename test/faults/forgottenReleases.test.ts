/**
 * Replicas that take over without the latest releases: what was released is free again as soon as the clients are connected to them. And
 * without what a leader has proclaimed last: everybody sees that again.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { RedisCluster, RedisSentinel, type RedisServer } from "@effect-redis-lock/testing"
import { assert } from "@effect/vitest"
import { Context, Effect, Fiber, Layer, Option, Schema, Scope, Stream } from "effect"
import {
  FairLock,
  LeaderElection,
  Lock,
  PermitSemaphore,
  ReadWriteLock,
  RedisDriver,
  Semaphore
} from "effect-redis-lock"
import { Cluster } from "ioredis"
import { type Client, clientOf, locksOver } from "../kit/clients.ts"
import { eventually, until } from "../kit/eventually.ts"
import { sectionUntilTold } from "../kit/sections.ts"
import { bare } from "../kit/server/bareRedis.ts"
import { testLive } from "../kit/test.ts"

/** No lease ends by itself within a test's time. */
const options = { watchdogLeaseTime: "3 hours", fallbackInterval: "1 second" } as const

type Server = RedisServer.RedisServer

interface Deployment {
  readonly driver: Layer.Layer<RedisDriver.RedisDriver, unknown>
  readonly master: Server
  readonly replica: Server
  /** Names that the master keeps. */
  readonly names: ReadonlyArray<string>
}

const sentinelDriver = ({ name, sentinels }: RedisSentinel.RedisSentinel) =>
  IoRedis.layerSentinel({ sentinels: sentinels.map(({ url }) => url), name })

const sentinel = Effect.gen(function* () {
  const redis = yield* RedisSentinel.start({ sentinels: 3, downAfter: "500 millis" })
  const [master, replica] = redis.servers as readonly [Server, Server]
  const deployment: Deployment = {
    driver: sentinelDriver(redis),
    master,
    replica,
    names: ["a", "b", "c", "d", "e", "f"]
  }
  return deployment
})

/** The replica of a node of a cluster. */
const replicaOf = Effect.fnUntraced(function* (nodes: ReadonlyArray<Server>, master: Server) {
  const onMaster = yield* bare(master)
  const id = yield* Effect.promise(() => onMaster.call("CLUSTER", "MYID"))
  const replicas = yield* eventually(
    "the master has a replica",
    async () => String(await onMaster.call("CLUSTER", "REPLICAS", String(id))),
    (replicas) => replicas !== ""
  )
  return nodes.find(({ port }) => replicas.includes(`:${port}@`))!
})

const cluster = Effect.gen(function* () {
  const redis = yield* RedisCluster.start({ replicas: 1, nodeTimeout: "1 second" })
  const master = redis.nodes[0]!
  const replica = yield* replicaOf(redis.nodes, master)
  const names: Array<string> = []
  for (let i = 0; names.length < 6; i++) {
    const owner = yield* redis.ownerOf(yield* redis.slotOf(`lock${i}`))
    if (owner === master) names.push(`lock${i}`)
  }
  const driver = IoRedis.layerCluster({ nodes: redis.urls })
  const deployment: Deployment = { driver, master, replica, names }
  return deployment
})

/** Keeps the replica from hearing of anything that its master has not written yet. */
const cutOff = Effect.fnUntraced(function* (master: Server, replica: Server) {
  const [onMaster, onReplica] = [yield* bare(master), yield* bare(replica)]
  yield* eventually(
    "the replica has heard of all grants",
    () => onMaster.wait(1, 1000),
    (heard) => heard === 1
  )
  // it does not connect again, and may take over however long ago that was
  yield* Effect.promise(() => onReplica.config("SET", "masterauth", "wrong"))
  yield* Effect.promise(() => onReplica.config("SET", "cluster-replica-validity-factor", "0"))
  yield* Effect.promise(() => onMaster.call("CLIENT", "KILL", "TYPE", "replica"))
  yield* eventually(
    "the replica is cut off",
    () => onReplica.info("replication"),
    (info) => info.includes("master_link_status:down")
  )
})

const deployments: Record<string, Effect.Effect<Deployment, unknown, Scope.Scope>> = {
  "that Sentinel promotes": sentinel,
  "that a cluster promotes": cluster
}

for (const [which, start] of Object.entries(deployments)) {
  testLive(
    `What was released last is free, permits are whole, and what a leader has proclaimed last is seen, on a replica ${which} without having heard of it`,
    function* () {
      const { driver, master, names, replica } = yield* start
      const [plain, fair, readWrite, leased, counted, led] = names as readonly [
        string,
        string,
        string,
        string,
        string,
        string
      ]
      const { run } = yield* clientOf(locksOver(driver, options))
      const other = yield* clientOf(locksOver(driver, options))
      const semaphore = Semaphore.make(counted, { permits: 3 })
      const permits = PermitSemaphore.make(leased, { permits: 3 })
      const sections = yield* Effect.forEach(
        [
          Lock.withLock(plain),
          Lock.withLock(FairLock.make(fair)),
          Lock.withLock(ReadWriteLock.make(readWrite).writeLock),
          PermitSemaphore.withPermits(permits, 3),
          Semaphore.withPermits(semaphore, 3)
        ],
        (around) => sectionUntilTold((body) => run(around(body)))
      )
      const election = LeaderElection.make(led, { value: Schema.String })
      const campaign = LeaderElection.campaign(election, { proclaim: "old" })
      const leadership = yield* run(Effect.provideService(campaign, Scope.Scope, yield* Effect.scope))
      yield* cutOff(master, replica)
      for (const { end } of sections) yield* end
      yield* leadership.proclaim("new")
      yield* master.kill
      const enters = <A, E>(section: Effect.Effect<A, E, never>) =>
        until(
          "another client is let in",
          Effect.map(Effect.result(section), ({ _tag }) => _tag === "Success")
        )
      yield* enters(other.run(Lock.withLock(Effect.void, plain, { waitTime: "5 seconds" })))
      yield* enters(other.run(Lock.withLock(Effect.void, FairLock.make(fair), { waitTime: "5 seconds" })))
      yield* enters(
        other.run(Lock.withLock(Effect.void, ReadWriteLock.make(readWrite).readLock, { waitTime: "5 seconds" }))
      )
      yield* until(
        "all permits are free",
        Effect.map(
          Effect.orElseSucceed(other.run(PermitSemaphore.availablePermits(permits)), () => 0),
          (n) => n === 3
        )
      )
      yield* until(
        "the counter is whole",
        Effect.map(
          Effect.orElseSucceed(other.run(Semaphore.availablePermits(semaphore)), () => 0),
          (n) => n === 3
        )
      )
      yield* eventually(
        "another client sees the leader",
        Effect.orElseSucceed(other.run(LeaderElection.leader(election)), () => Option.none()),
        (leader) => Option.contains("new")(Option.flatMap(leader, ({ value }) => value))
      )
      yield* leadership.ensureLeading
    }
  )
}

testLive(
  "A cluster's driver tells of a replica that takes over, even over a connection that stood before",
  function* () {
    const redis = yield* RedisCluster.start({ replicas: 1, nodeTimeout: "1 second" })
    const application = yield* Effect.acquireRelease(
      Effect.sync(() => new Cluster([...redis.urls]).on("error", () => {})),
      (application) => Effect.sync(() => application.disconnect())
    )
    const context = yield* Layer.build(IoRedis.fromClient(application))
    const driver = Context.get(context, RedisDriver.RedisDriver)
    const slot = yield* redis.slotOf("a")
    const before = yield* redis.ownerOf(slot)
    const onReplica = yield* bare(yield* replicaOf(redis.nodes, before))
    yield* eventually(
      "it is connected to every node",
      async () => {
        application.refreshSlotsCache()
        await Promise.allSettled(application.nodes("all").map((node) => node.ping()))
        return application.nodes("all").length
      },
      (nodes) => nodes === redis.nodes.length
    )
    let told = 0
    yield* Effect.forkScoped(
      Stream.runForEach(driver.reconnects!, () => Effect.sync(() => told++)),
      { startImmediately: true }
    )
    yield* eventually(
      "the replica is the master",
      // refused while it is not in sync
      Effect.andThen(
        Effect.ignore(Effect.tryPromise(() => onReplica.call("CLUSTER", "FAILOVER"))),
        Effect.orElseSucceed(redis.ownerOf(slot), () => before)
      ),
      (owner) => owner !== before
    )
    // a command to the old master is redirected
    const script = { name: "one", lua: "return 1", sha1: "e0e1f9fabfc9d4800c877a703b823ac0578ff8db" }
    yield* Effect.exit(driver.eval(script, ["a"], []))
    yield* until("the driver tells", () => told > 0)
  }
)

testLive(
  "Clients that take turns go on after each of three planned failovers, and the permits are whole",
  function* () {
    const redis = yield* RedisSentinel.start({ sentinels: 3, replicas: 2 })
    const clients: ReadonlyArray<Client> = yield* Effect.forEach([1, 2, 3, 4], () =>
      clientOf(locksOver(sentinelDriver(redis), options))
    )
    const semaphore = Semaphore.make("permits", { permits: 3 })
    let sections = 0
    let isOver = false
    const count = Effect.andThen(
      Effect.sleep(5),
      Effect.sync(() => sections++)
    )
    const fibers = yield* Effect.forEach(clients, ({ run }) =>
      Effect.forkScoped(
        Effect.whileLoop({
          while: () => !isOver,
          body: () =>
            Effect.ignore(run(count.pipe(Lock.withLock("turns"), Semaphore.withPermits(semaphore, 1)))).pipe(
              Effect.andThen(Effect.sleep(5))
            ),
          step: () => {}
        })
      )
    )
    for (let failover = 1; failover <= 3; failover++) {
      yield* until("the sentinels have promoted a replica", Effect.isSuccess(redis.failover))
      const before = sections
      yield* until(`they take turns after failover ${failover}`, () => sections > before + 20)
    }
    isOver = true
    yield* Fiber.awaitAll(fibers)
    assert.strictEqual(
      yield* eventually(
        "the counter is whole",
        Effect.orElseSucceed(clients[0]!.run(Semaphore.availablePermits(semaphore)), () => -1),
        (free) => free === 3
      ),
      3
    )
  }
)
