import { IoRedis } from "@effect-redis-lock/ioredis"
import { RedisCluster, TcpProxy } from "@effect-redis-lock/testing"
import { assert, it, type Vitest } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer, Ref, Scope, Stream } from "effect"
import { type AcquireError, Lock, LockLost, LockStoreError, LockTimeout, RedisDriver } from "effect-redis-lock"
import { Cluster, type Redis } from "ioredis"
import { clientOf, locksOver } from "../kit/clients.ts"
import { clusterClient, mastersOf, shardSubscribers, TheCluster } from "../kit/server/cluster.ts"
import { isTracked } from "../kit/server/conditions.ts"
import { serverKnows } from "../kit/server/knows.ts"
import { eventually, soon } from "../kit/eventually.ts"
import { failure, loss, storeError } from "../kit/exits.ts"
import { enter, queueUp } from "../kit/sections.ts"
import { freshName } from "../kit/names.ts"
import { bare } from "../kit/server/bareRedis.ts"
import { networkInterfaces } from "node:os"
import { testLive as test, type Test, testsOf } from "../kit/test.ts"

// Nobody falls back to asking within a test's time: who wakes up was told.
const patient = { fallbackInterval: "1 hour", watchdogLeaseTime: "1 minute" } as const

/** Otherwise it may be any node that a cluster's message comes from. */
const isSharded = await serverKnows("SSUBSCRIBE")

/** Waits until a node other than this one serves the slot of the lock. */
const takenOver = Effect.fnUntraced(function* (lock: string, from: { readonly port: number }) {
  const cluster = yield* TheCluster
  const slot = yield* cluster.slotOf(lock)
  const owner = Effect.map(cluster.ownerOf(slot), ({ port }) => port)
  yield* eventually(
    "a replica has taken over",
    () => Effect.runPromise(Effect.orElseSucceed(owner, () => from.port)),
    (port) => port !== from.port
  )
  return yield* cluster.ownerOf(slot)
})

/** Waits until all replicas have what the node has. */
const replicated = Effect.fnUntraced(function* (node: Parameters<typeof bare>[0]) {
  const redis = yield* bare(node)
  yield* eventually(
    "the replica is in sync",
    () => redis.info("replication"),
    (info) => {
      const offset = /master_repl_offset:(\d+)/.exec(info)![1]
      return new RegExp(`slave0:.*state=online,offset=${offset},`).test(info)
    }
  )
}, Effect.scoped)

/** The replica of a master. */
const replicaOf = Effect.fnUntraced(function* (master: Redis) {
  const { nodes } = yield* TheCluster
  const [, , replicas] = (yield* Effect.promise(() => master.role())) as ["master", number, Array<[string, string]>]
  return nodes.find(({ port }) => String(port) === replicas[0]?.[1])!
})

/** A client follows a redirection without asking which node has which slot: its user may not. */
const followsRedirection = (natMap?: (address: string) => { readonly host: string; readonly port: number }) =>
  Effect.gen(function* () {
    const cluster = yield* TheCluster
    const lock = freshName("redirected")
    const { other, owner, slot } = yield* mastersOf(cluster, lock)
    const nodes = yield* Effect.forEach(cluster.nodes, bare)
    const acl = (...rules: ReadonlyArray<string>) =>
      Effect.promise(() => Promise.all(nodes.map((node) => node.call("ACL", "SETUSER", "redirected", ...rules))))
    yield* acl("on", ">secret", "~*", "&*", "+@all")
    yield* Effect.addFinalizer(() =>
      Effect.promise(() => Promise.all(nodes.map((node) => node.call("ACL", "DELUSER", "redirected"))))
    )
    const client = yield* clientOf(
      locksOver(
        IoRedis.layerCluster({
          nodes: cluster.urls.map((url) => url.replace("//", "//redirected:secret@")),
          ...{ connectTimeout: "1 minute", warnings: [] },
          ioredis: { natMap }
        })
      )
    )
    const once = client.run(Lock.withLock(Effect.succeed("done"), lock, { waitTime: 0 }))
    assert.strictEqual(yield* once, "done")
    const finish = yield* cluster.beginMoveSlot(slot, other)
    yield* acl("-cluster")
    yield* finish
    assert.strictEqual(yield* once, "done")
    yield* cluster.moveSlot(slot, owner)
  }).pipe(Effect.scoped)

it.layer(TheCluster.layer({ replicas: 1, nodeTimeout: "1 second" }), { excludeTestServices: true })(
  "on a cluster whose masters fail",
  (it) => {
    /** What a test has broken is mended before the next. */
    const mending = (run: Vitest.Test<TheCluster | Scope.Scope>): Test<TheCluster> =>
      testsOf((title, body, timeout) =>
        run(
          title,
          Effect.fnUntraced(function* (context) {
            yield* Effect.scoped(body(context))
            yield* (yield* TheCluster).ok
          }),
          timeout
        )
      )
    const test = mending(it.effect)

    test("Locks are acquired and released through a cluster's failover, with transient failures at worst", function* () {
      const cluster = yield* TheCluster
      const locks = Array.from({ length: 30 }, freshName)
      const { owner } = yield* mastersOf(cluster, locks[0]!)
      const one = yield* clusterClient(cluster, { commandTimeout: "1 second" })
      const other = yield* clusterClient(cluster, { commandTimeout: "1 second" })
      const failures: Array<AcquireError | LockLost> = []
      const inside = new Map<string, number>()
      const sections = new Map<string, number>()
      const stopped = yield* Ref.make(false)
      const section = (lock: string) =>
        Effect.acquireUseRelease(
          Effect.sync(() => inside.set(lock, (inside.get(lock) ?? 0) + 1)),
          () => Effect.sleep(5),
          () => Effect.sync(() => inside.set(lock, inside.get(lock)! - 1))
        ).pipe(
          Effect.andThen(Effect.sync(() => sections.set(lock, (sections.get(lock) ?? 0) + 1))),
          Lock.withLock(lock, { waitTime: "2 seconds" })
        )
      const worker = (run: typeof one.run, lock: string) =>
        Effect.gen(function* () {
          while (!(yield* Ref.get(stopped))) {
            const result = yield* Effect.result(run(section(lock)) as Effect.Effect<unknown, AcquireError | LockLost>)
            if (result._tag === "Success") continue
            failures.push(result.failure)
            yield* Effect.sleep(50)
          }
        })
      const workers = yield* Effect.forEach(
        locks.flatMap((lock) => [worker(one.run, lock), worker(other.run, lock)]),
        (self) => Effect.forkScoped(self)
      )
      const progress = (what: string) =>
        Effect.andThen(
          Effect.sync(() => sections.clear()),
          eventually(
            what,
            () => locks.filter((lock) => (sections.get(lock) ?? 0) < 3),
            (late) => late.length === 0
          )
        )
      yield* progress("every lock has been taken three times")
      yield* owner.kill
      yield* takenOver(locks[0]!, owner)
      yield* progress("every lock has been taken three times again")
      yield* Ref.set(stopped, true)
      yield* soon("all come to an end", Fiber.joinAll(workers))
      // a waiter may outlive it, lose what it holds, or wait for what a holder that could not release has left
      for (const error of failures) {
        assert.isTrue(
          error instanceof LockStoreError
            ? error.isTransient || error.workDone === true
            : error instanceof LockLost || error instanceof LockTimeout,
          error.message
        )
      }
      yield* owner.restart

      // and they exclude each other again
      for (const lock of locks) {
        const taken = yield* one.run(
          Effect.succeed(true).pipe(Lock.withLockIfAvailable(lock), other.run, Lock.withLock(lock))
        )
        assert.strictEqual(taken._tag, "None", lock)
      }
    })

    test("A lock that a cluster's failover has lost is reported, and belongs to its new holder", function* () {
      const cluster = yield* TheCluster
      const lock = freshName("failover")
      const { owner } = yield* mastersOf(cluster, lock)
      const redis = yield* bare(owner)
      yield* replicated(owner)
      const replica = yield* replicaOf(redis)
      const holder = yield* clusterClient(cluster, { watchdogLeaseTime: "12 seconds", commandTimeout: "1 second" })
      // the replica does not hear of the grant, not even from what its socket has received
      yield* replica.pause
      yield* Effect.promise(() => redis.client("KILL", "TYPE", "REPLICA"))
      const held = yield* enter(holder, lock, { persistent: true })
      yield* owner.kill
      yield* replica.resume
      yield* takenOver(lock, owner)
      const next = yield* enter(yield* clusterClient(cluster), lock, { persistent: true })
      assert.strictEqual(loss(yield* held.exit).reason, "NotOwner")
      assert.isTrue(held.wasInterrupted())
      yield* next.finish
      yield* owner.restart
    })

    test("The master that a cluster's failover has brought up tells of losses", function* () {
      const cluster = yield* TheCluster
      const lock = freshName("failover")
      const holder = yield* clusterClient(cluster, { watchdogLeaseTime: "1 hour" })
      const held = yield* enter(holder, lock)
      const { owner } = yield* mastersOf(cluster, lock)
      yield* isTracked(yield* bare(owner))
      yield* replicated(owner)
      yield* owner.kill
      const redis = yield* bare(yield* takenOver(lock, owner))
      yield* isTracked(redis)
      yield* Effect.promise(() => redis.del(lock))
      assert.strictEqual(loss(yield* held.exit).reason, "NotOwner")
      yield* owner.restart
    })

    test("After a failover of one master, every other one goes on telling of losses over an application's own Cluster", function* () {
      const cluster = yield* TheCluster
      const moved = freshName("failover")
      const { other, owner } = yield* mastersOf(cluster, moved)
      let lock = freshName("elsewhere")
      while ((yield* cluster.ownerOf(yield* cluster.slotOf(lock))).port !== other.port) lock = freshName("elsewhere")
      const application = yield* Effect.acquireRelease(
        Effect.sync(() => new Cluster([...cluster.urls]).on("error", () => {})),
        (application) => Effect.sync(() => application.disconnect())
      )
      const holder = yield* clientOf(
        locksOver(IoRedis.fromClient(application, { warnings: [] }), { watchdogLeaseTime: "1 hour" })
      )
      const first = yield* enter(holder, lock)
      const redis = yield* bare(other)
      yield* isTracked(redis)
      yield* first.finish
      yield* replicated(owner)
      const replica = yield* bare(yield* replicaOf(yield* bare(owner)))
      yield* Effect.promise(() => replica.cluster("FAILOVER"))
      yield* eventually(
        "it has taken over",
        () => replica.role(),
        ([role]) => role === "master"
      )
      // the connection to the new master becomes ready with its first command
      yield* (yield* enter(holder, moved)).finish
      const held = yield* enter(holder, lock)
      yield* isTracked(redis)
      yield* Effect.promise(() => redis.del(lock))
      assert.strictEqual(loss(yield* soon("it is told", held.exit)).reason, "NotOwner")
    })

    mending(it.effect.skipIf(!isSharded))(
      "A waiter whose subscription was with a killed master of a cluster is served",
      function* () {
        const cluster = yield* TheCluster
        const lock = freshName("failover")
        const { owner } = yield* mastersOf(cluster, lock)
        const holder = yield* enter(yield* clusterClient(cluster, patient), lock)
        const waiter = yield* queueUp(yield* clusterClient(cluster, patient), lock, { persistent: true })
        yield* shardSubscribers(owner, lock, 1)
        yield* replicated(owner)
        yield* owner.kill
        const successor = yield* takenOver(lock, owner)
        yield* shardSubscribers(successor, lock, 1)
        assert.isUndefined(waiter.fiber.pollUnsafe())
        yield* holder.end
        const next = yield* waiter.entered
        yield* next.finish
        yield* owner.restart
      }
    )

    test("A connection for subscriptions to a demoted master of a cluster is closed, and idle others stay", function* () {
      const cluster = yield* TheCluster
      const channel = freshName("channel")
      const { other, owner } = yield* mastersOf(cluster, channel)
      const ownerOf = (channel: string) => Effect.flatMap(cluster.slotOf(channel), cluster.ownerOf)
      let elsewhere = freshName("channel")
      while ((yield* ownerOf(elsewhere)).port !== other.port) elsewhere = freshName("channel")
      const label = freshName("subscriber")
      const options = { nodes: cluster.urls, connectTimeout: "1 minute", label, warnings: [] } as const
      const driver = yield* Effect.provideContext(
        RedisDriver.RedisDriver,
        yield* Layer.build(IoRedis.layerCluster(options))
      )
      const atOwner = yield* bare(owner)
      const atOther = yield* bare(other)
      const clientList = async (redis: Redis) => String(await redis.client("LIST")).split("\n")
      /** The connection over which the driver is subscribed there, as the server numbers it. */
      const subscribed = (redis: Redis) =>
        eventually(
          "the driver is subscribed",
          async () =>
            (await clientList(redis)).find((line) => line.includes(` name=${label} `) && / s?sub=1 /.test(line)),
          (line) => line !== undefined
        ).pipe(Effect.map((line) => line!.split(" ")[0]!))
      const subscribe = Effect.fnUntraced(function* (channel: string, redis: Redis) {
        const fiber = yield* Effect.forkScoped(Stream.runDrain(driver.subscribe(channel)))
        const id = yield* subscribed(redis)
        const isOpen = async () => (await clientList(redis)).some((line) => line.startsWith(`${id} `))
        return { fiber, isOpen }
      })
      const atFormer = yield* subscribe(channel, atOwner)
      const idle = yield* subscribe(elsewhere, atOther)
      yield* Fiber.interrupt(idle.fiber)
      yield* replicated(owner)
      const replica = yield* bare(yield* replicaOf(atOwner))
      yield* Effect.promise(() => replica.cluster("FAILOVER"))
      const successor = yield* bare(yield* takenOver(channel, owner))
      yield* eventually(
        "the connection to the former master is closed",
        atFormer.isOpen,
        (isOpen) => !isOpen,
        "1 minute"
      )
      yield* subscribed(successor)
      assert.isTrue(yield* Effect.promise(idle.isOpen))
    })

    test("A master of a cluster that hangs costs time-outs until its replica takes over, and no lock", function* () {
      const cluster = yield* TheCluster
      const lock = freshName("failover")
      const { owner } = yield* mastersOf(cluster, lock)
      const client = yield* clusterClient(cluster, { commandTimeout: "500 millis" })
      yield* client.run(Lock.withLock(Effect.void, lock))
      yield* replicated(owner)
      yield* owner.pause
      const first = failure(yield* Effect.exit(client.run(Lock.withLock(Effect.void, lock, { waitTime: 0 }))))
      assert.deepInclude(first, { _tag: "LockStoreError", reason: "TimedOut" })
      yield* takenOver(lock, owner)
      const next = yield* enter(client, lock, { persistent: true })
      // what was sent to it is run now, or refused: either way it changes nothing
      yield* owner.resume
      yield* cluster.ok
      yield* next.holding.renew().pipe(client.run)
      yield* next.finish
    })

    test("Behind a NAT a redirection is followed at once, also while no node tells which slots it has", function* () {
      // the nodes call themselves 127.0.0.1
      yield* followsRedirection((address) => ({ host: "localhost", port: Number(address.split(":").at(-1)) }))
    })
  }
)

const hasIPv6 = Object.values(networkInterfaces()).some((addresses) =>
  addresses?.some(({ address }) => address === "::1")
)
if (!hasIPv6) console.log("Redirections to ::1 are not tried, as this machine has no IPv6")

const ofIPv6 = { args: ["--bind", "127.0.0.1", "::1", "--cluster-announce-ip", "::1"] }

it.layer(TheCluster.layer(hasIPv6 ? ofIPv6 : {}), { excludeTestServices: true })("on a cluster of IPv6", (it) => {
  it.effect.skipIf(!hasIPv6)("A redirection to an IPv6 address that begins with a colon is followed at once", () =>
    followsRedirection()
  )
})

test("A cluster all of whose nodes have come back at other addresses is found again by its startup node", function* () {
  const former = yield* RedisCluster.start({ replicas: 1 })
  const redis = yield* bare(former.nodes[0]!)
  yield* eventually(
    "replicas are named, to which nobody connects",
    () => redis.cluster("SLOTS") as Promise<ReadonlyArray<ReadonlyArray<unknown>>>,
    (ranges) => ranges.every(({ length }) => length === 4)
  )
  const scope = yield* Scope.make()
  const startup = yield* Scope.provide(TcpProxy.make({ target: former.nodes[0]! }), scope)
  const client = yield* clientOf(
    locksOver(IoRedis.layerCluster({ nodes: [startup.url], connectTimeout: "1 minute" }), patient)
  )
  const lock = freshName()
  yield* client.run(Lock.withLock(Effect.void, lock))
  yield* Effect.forEach(former.nodes, (node) => node.kill)
  yield* Scope.close(scope, Exit.void)
  const waiter = yield* queueUp(client, lock)
  const { nodes } = yield* RedisCluster.start()
  yield* TcpProxy.make({ target: nodes[0]!, port: startup.port })
  yield* (yield* waiter.entered).finish
})

test("While no node of a cluster answers, requests fail as transient, and a waiter waits on", function* () {
  const cluster = yield* RedisCluster.start()
  const client = yield* clusterClient(cluster, { commandTimeout: "300 millis" })
  const lock = freshName()
  const section = Effect.succeed("done").pipe(Lock.withLock(lock, { waitTime: 0 }), client.run)
  // on a busy machine a command may take longer than it may here
  yield* eventually("the lock is acquired", Effect.exit(section), Exit.isSuccess)
  yield* Effect.forEach(cluster.nodes, (node) => node.pause)
  const waiter = yield* queueUp(client, lock)
  for (let attempt = 0; attempt < 12; attempt++) {
    const error = storeError(yield* Effect.exit(section))
    assert.isTrue(error.isTransient, error.message)
  }
  yield* Effect.forEach(cluster.nodes, (node) => node.resume)
  // a waiter has outlived it
  const next = yield* waiter.entered
  yield* next.finish
})
