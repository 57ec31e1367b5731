/**
 * A master that becomes a replica and keeps its connections, while its address leads to the new master.
 */
import { RedisServer } from "@effect-redis-lock/testing"
import { assert, describe } from "@effect/vitest"
import { Effect, Fiber, type Scope } from "effect"
import { CountDownLatch, Lock, MultiLock, type RedisLock } from "effect-redis-lock"
import { Redis } from "ioredis"
import { type AddressInfo, connect, createServer, type Socket } from "node:net"
import { type Client, client, clientOver } from "../kit/clients.ts"
import { recording } from "../kit/connectionLog.ts"
import { eventually } from "../kit/eventually.ts"
import { loss, storeError } from "../kit/exits.ts"
import { enter, queueUp } from "../kit/sections.ts"
import { bare, reconnectsAtOnce } from "../kit/server/bareRedis.ts"
import { connected, isTracked, lockKey, renewed } from "../kit/server/conditions.ts"
import { behindProxy } from "../kit/server/onServer.ts"
import { takesPlace } from "../kit/server/places.ts"
import { testLive } from "../kit/test.ts"

/** An address that can lead new connections elsewhere, as a name in DNS does; those that stand stay where they are. */
const movingAddress = (first: { readonly port: number }) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      let { port } = first
      const sockets = new Set<Socket>()
      const server = createServer((incoming) => {
        const outgoing = connect(port, "127.0.0.1")
        for (const [socket, other] of [
          [incoming, outgoing],
          [outgoing, incoming]
        ] as const) {
          sockets.add(socket)
          socket.on("error", () => {}).on("close", () => other.destroy())
          socket.pipe(other)
        }
      })
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
      return {
        url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`,
        leadTo: (next: { readonly port: number }) => {
          port = next.port
        },
        close: () => {
          server.close()
          for (const socket of sockets) socket.destroy()
        }
      }
    }),
    ({ close }) => Effect.sync(close)
  )

const replicate = Effect.fnUntraced(function* (replica: Redis, { port }: { readonly port: number }) {
  yield* Effect.promise(() => replica.replicaof("127.0.0.1", port))
  yield* eventually(
    "the replica has its master's data",
    () => replica.info("replication"),
    (info) => info.includes("master_link_status:up")
  )
})

/** A replica, its master, and an address that leads to the master until the failover. */
const pair = Effect.gen(function* () {
  const args = ["--repl-diskless-sync-delay", "0"]
  const master = yield* RedisServer.start({ args })
  const replica = yield* RedisServer.start({ args })
  const atMaster = yield* bare(master)
  const atReplica = yield* bare(replica)
  yield* replicate(atReplica, master)
  const address = yield* movingAddress(master)
  /** The replica takes over what it has, and the master keeps its connections. */
  const failOver = Effect.promise(async () => {
    await atMaster.wait(1, 0)
    address.leadTo(replica)
    await atReplica.replicaof("NO", "ONE")
    await atMaster.replicaof("127.0.0.1", replica.port)
  })
  return { address, atMaster, atReplica, failOver, master, replica }
})

type Pair = Effect.Success<typeof pair>

/** Runs a test with clients of the library as it connects by itself, and as an application connects it by the recipe of the driver's README. */
const withEachClient = (
  title: string,
  body: (
    pair: Pair,
    connect: (options?: RedisLock.RedisLockOptions) => Effect.Effect<Client, unknown, Scope.Scope>
  ) => Effect.Effect<void, unknown, Scope.Scope>
) => {
  testLive(title, function* () {
    const site = yield* pair
    yield* body(site, (options) => client(site.address, options))
  })
  testLive(`${title} (an application's own client)`, function* () {
    const site = yield* pair
    const connect = (options?: RedisLock.RedisLockOptions) =>
      Effect.acquireRelease(
        Effect.sync(
          () =>
            new Redis(site.address.url, {
              ...reconnectsAtOnce,
              reconnectOnError: (error) => /READONLY|MASTERDOWN/.test(error.message)
            })
        ),
        (redis) => Effect.sync(() => redis.disconnect())
      ).pipe(Effect.flatMap((redis) => clientOver(redis, options)))
    yield* body(site, connect)
  })
}

/** The client learns that its server has become a replica, and reconnects. */
const reconnects = ({ run }: Client) => run(Lock.withLock(Effect.void, "bystander", { waitTime: "1 minute" }))

describe("a master that becomes a replica", { concurrent: true }, () => {
  testLive(
    "After a failover behind one address holders keep their locks, and waiters are let in by the new master",
    function* () {
      const { address, atReplica, failOver } = yield* pair
      const log = recording()
      const holder = yield* enter(
        yield* Effect.provide(client(address, { watchdogLeaseTime: "15 seconds" }), log.layer),
        "report"
      )
      const waiter = yield* queueUp(yield* client(address), "report")
      const bystander = yield* client(address)
      yield* bystander.run(Lock.withLock(Effect.void, "other"))
      yield* lockKey(atReplica, "report", "there")
      yield* failOver
      const error = storeError(yield* Effect.exit(bystander.run(Lock.withLock(Effect.void, "other", { waitTime: 0 }))))
      assert.strictEqual(error.reason, "ReadOnly")
      assert.isTrue(error.isTransient)
      assert.strictEqual(
        yield* bystander.run(Lock.withLock(Effect.succeed("in"), "other", { waitTime: "1 minute" })),
        "in"
      )
      yield* renewed(atReplica, "report", 1)
      yield* holder.finish
      const next = yield* waiter.entered
      yield* next.finish
      // the subscriptions follow, if there are any yet
      const [lost, restored, ...others] = log.lines.filter(({ connection }) => connection === "commands")
      assert.deepInclude(lost, { event: "lost", reason: "ReadOnly" })
      assert.include(lost!.message, "READONLY")
      assert.deepInclude(restored, { event: "restored" })
      assert.deepStrictEqual(others, [])
    }
  )

  withEachClient(
    "After a failover behind one address the new master hands a lock over to a waiter from before it ahead of a later one",
    ({ atMaster, atReplica, failOver }, connect) =>
      Effect.gen(function* () {
        const holder = yield* enter(yield* connect(), "report")
        const first = yield* takesPlace(yield* connect(), atMaster, 0)
        yield* failOver
        // each of them is subscribed there by then
        const second = yield* takesPlace(yield* connect(), atReplica, 1)
        yield* holder.finish
        const order: Array<string> = []
        const inTurn = (who: string, { entered }: typeof first) =>
          Effect.flatMap(entered, ({ finish }) =>
            Effect.andThen(
              Effect.sync(() => order.push(who)),
              finish
            )
          )
        yield* Effect.all([inTurn("second", second), inTurn("first", first)], { concurrency: "unbounded" })
        assert.deepStrictEqual(order, ["first", "second"])
      })
  )

  withEachClient(
    "After a failover behind one address the new master tells a holder that somebody has deleted its lock",
    ({ atMaster, atReplica, failOver }, connect) =>
      Effect.gen(function* () {
        const mine = yield* connect({ watchdogLeaseTime: "1 hour" })
        const held = yield* enter(mine, "report")
        yield* isTracked(atMaster)
        yield* failOver
        yield* reconnects(mine)
        yield* isTracked(atReplica)
        yield* Effect.promise(() => atReplica.del("report"))
        assert.strictEqual(loss(yield* held.exit).reason, "NotOwner")
      })
  )

  testLive(
    "A holder whose connection for commands alone was led to another server is told of its loss there",
    function* () {
      const { address, atMaster, atReplica, failOver, master } = yield* pair
      // connections that follow have numbers here that none has at the other server
      yield* Effect.scoped(
        Effect.forEach(Array.from({ length: 50 }), () =>
          Effect.flatMap(bare(master), (redis) => Effect.promise(() => redis.ping()))
        )
      )
      const mine = yield* client(address, { watchdogLeaseTime: "1 hour" })
      const held = yield* enter(mine, "report")
      yield* isTracked(atMaster)
      yield* failOver
      const connections = String(yield* Effect.promise(() => atMaster.client("LIST")))
      const commands = /^id=(\d+) .* redir=[1-9]/m.exec(connections)!
      yield* Effect.promise(() => atMaster.client("KILL", "ID", commands[1]!))
      yield* isTracked(atReplica)
      yield* Effect.promise(() => atReplica.del("report"))
      assert.strictEqual(loss(yield* held.exit).reason, "NotOwner")
    }
  )

  for (const [title, within] of [
    ["the same", "50 seconds"],
    ["another", "40 seconds"]
  ] as const) {
    testLive(
      `After a failover behind one address grants wait for the replicas of the new master, with ${title} requirement`,
      function* () {
        const { address, failOver, replica } = yield* pair
        // storing a label would show the connection for commands that its server has become a replica
        const { run } = yield* client(address, { acknowledge: { replicas: 1, within: "50 seconds" }, label: "" })
        yield* run(Lock.withLock(Effect.void, "report"))
        yield* failOver
        yield* replicate(yield* bare(yield* RedisServer.start()), replica)
        const acknowledge = { replicas: 1, within } as const
        const section = Lock.withLock(Effect.succeed("in"), "report", { waitTime: "1 minute", acknowledge })
        assert.strictEqual(yield* run(section), "in")
      }
    )
  }

  testLive(
    "Commands in flight behind one that a replica has refused may have run, as it may have been promoted: they are rolled back",
    function* () {
      const { proxy, redis } = yield* behindProxy()
      const mine = yield* client(proxy, {
        commandTimeout: "1 minute",
        watchdogLeaseTime: "5 minutes",
        label: ""
      })
      const { run } = mine
      const atOnce = { waitTime: 0 } as const
      yield* run(Lock.withLock(Effect.void, "warm-up"))
      yield* run(CountDownLatch.trySetCount("latch", 2))
      // a replica that has never reached its master keeps what it has
      yield* Effect.promise(() => redis.replicaof("127.0.0.1", 1))
      yield* proxy.stallReplies
      yield* Effect.promise(() => redis.config("RESETSTAT"))
      const start = <A, E>(self: Effect.Effect<A, E, RedisLock.RedisLock>) =>
        Effect.forkScoped(run(self), { startImmediately: true })
      const refused = yield* start(Lock.withLock(Effect.void, "refused", atOnce))
      yield* eventually(
        "the replica has refused a command",
        () => redis.info("errorstats"),
        // under which name depends on the server's version
        (stats) => stats.includes("errorstat_")
      )
      yield* proxy.stall
      const names = ["one", "several:1", "latch", "waited"]
      const sent = yield* proxy.stallRepliesAfter((sent) => names.every((name) => sent.includes(name)))
      const one = yield* start(Lock.withLock(Effect.void, "one", atOnce))
      const several = yield* start(Lock.withLock(Effect.void, MultiLock.make(["several:1", "several:2"]), atOnce))
      const countDown = yield* start(CountDownLatch.countDown("latch"))
      const waiter = yield* start(Lock.withLock(Effect.succeed("in"), "waited"))
      yield* sent
      yield* Effect.promise(() => redis.replicaof("NO", "ONE"))
      // what is held back comes at once: the replica's refusal to the client, the other commands to the master
      yield* proxy.delay("5 seconds")
      yield* proxy.resume
      const first = storeError(yield* Fiber.await(refused))
      assert.deepInclude(first, { reason: "ReadOnly", isOutcomeUnknown: false })
      for (const fiber of [one, several, countDown]) {
        const error = storeError(yield* Fiber.await<unknown, unknown>(fiber))
        assert.strictEqual(error.reason, "ConnectionLost")
        assert.isTrue(error.isOutcomeUnknown)
        assert.match(error.message, /the server was a replica: .*\bREADONLY/)
      }
      yield* proxy.delay(0)
      assert.strictEqual(yield* Fiber.join(waiter), "in")
      for (const name of ["one", "several:1", "several:2"]) {
        yield* lockKey(redis, `redisson_lock_token:{${name}}`, "there")
        yield* lockKey(redis, name, "gone")
      }
      yield* connected(mine)
      assert.strictEqual(yield* run(CountDownLatch.countDown("latch")), 0)
    }
  )

  withEachClient(
    "A connection to a former master that serves nothing, as it cannot reach the new one, is replaced as well",
    ({ address, atMaster, atReplica, replica }, connect) =>
      Effect.gen(function* () {
        const { run } = yield* connect()
        yield* run(Lock.withLock(Effect.void, "report"))
        address.leadTo(replica)
        yield* Effect.promise(async () => {
          await atReplica.replicaof("NO", "ONE")
          await atMaster.config("SET", "replica-serve-stale-data", "no")
          // nobody listens there
          await atMaster.replicaof("127.0.0.1", 1)
        })
        const error = storeError(yield* Effect.exit(run(Lock.withLock(Effect.void, "report", { waitTime: 0 }))))
        assert.include(error.message, "MASTERDOWN")
        assert.strictEqual(error.reason, "ReadOnly")
        assert.strictEqual(yield* run(Lock.withLock(Effect.succeed("in"), "report", { waitTime: "1 minute" })), "in")
      })
  )

  testLive("A replica that is given as the server is connected to again at most once a second", function* () {
    const { atReplica, replica } = yield* pair
    const connections = async () => Number(/total_connections_received:(\d+)/.exec(await atReplica.info("stats"))?.[1])
    const mine = yield* client(replica)
    const before = yield* Effect.promise(connections)
    const start = performance.now()
    let refusals = 0
    let made = 0
    while (refusals < 100 || performance.now() - start < 2500 || made === 0) {
      const error = storeError(yield* Effect.exit(mine.run(Lock.withLock(Effect.void, "report", { waitTime: 0 }))))
      assert.isTrue(error.isTransient, error.message)
      if (error.reason === "ReadOnly") refusals++
      made = (yield* Effect.promise(connections)) - before
    }
    assert.isAtMost(made, 1 + (performance.now() - start) / 1000)
  })

  testLive("An application's own client is not disconnected when its server becomes a replica", function* () {
    const { replica } = yield* pair
    const redis = yield* bare(replica)
    const mine = yield* clientOver(redis)
    const id = yield* Effect.promise(() => redis.client("ID"))
    const error = storeError(yield* Effect.exit(mine.run(Lock.withLock(Effect.void, "report", { waitTime: 0 }))))
    assert.strictEqual(error.reason, "ReadOnly")
    assert.strictEqual(yield* Effect.promise(() => redis.client("ID")), id)
  })
})
