import { IoRedis } from "@effect-redis-lock/ioredis"
import { RedisCluster, RedisServer, TcpProxy } from "@effect-redis-lock/testing"
import { assert, describe } from "@effect/vitest"
import { Context, Duration, Effect, Exit, Fiber, Layer, Scope, Stream } from "effect"
import {
  CountDownLatch,
  FairLock,
  FencedLock,
  type Holding,
  Lock,
  MultiLock,
  NonReentrantLock,
  PermitSemaphore,
  ReadWriteLock,
  RedisDriver,
  type RedisLock,
  Semaphore,
  SpinLock
} from "effect-redis-lock"
import { Cluster, type Redis } from "ioredis"
import { readFile } from "node:fs/promises"
import { vi } from "vitest"
import {
  applicationInUse,
  channelOf,
  clusterClient,
  mastersOf,
  shardSubscribers,
  TheCluster
} from "../kit/server/cluster.ts"
import { clientOf, locksOver } from "../kit/clients.ts"
import { eventually, soon, until } from "../kit/eventually.ts"
import { growsBy } from "../kit/server/conditions.ts"
import { storeError } from "../kit/exits.ts"
import { enter, queueUp, sectionUntilTold } from "../kit/sections.ts"
import { bare } from "../kit/server/bareRedis.ts"
import { freshName } from "../kit/names.ts"
import { expectWarning } from "../run/logs.ts"
import { testLive, suitesOn } from "../kit/test.ts"
import { undisturbed } from "../kit/undisturbed.ts"

/** The part of ioredis' Cluster that knows its nodes. */
interface Pool {
  readonly reset: (nodes: ReadonlyArray<object>) => void
}

// Nobody falls back to asking within a test's time: who wakes up was told.
const patient = { fallbackInterval: "1 hour", watchdogLeaseTime: "1 hour" } as const

suitesOn(TheCluster.layer(), { excludeTestServices: true })("on a cluster", (test) => {
  describe("a lock", () => {
    test("A lock on a cluster is renewed together with the locks of its slot, on whichever master they are, also after each has forgotten all scripts", function* () {
      const cluster = yield* TheCluster
      const masters = yield* Effect.forEach(cluster.nodes, bare)
      const { run } = yield* clusterClient(cluster, { watchdogLeaseTime: "6 seconds" })
      const locks = Array.from({ length: 12 }, freshName)
      yield* run(
        Effect.gen(function* () {
          const holdings = yield* Effect.forEach(locks, (lock) => Lock.scoped(lock))
          const left = ({ remaining }: Holding) => Effect.runPromise(Effect.map(remaining, Duration.toMillis))
          const renewed = Effect.forEach(holdings, (holding) => growsBy("it is renewed", () => left(holding), 1), {
            concurrency: "unbounded"
          })
          yield* renewed
          yield* Effect.forEach(masters, (redis) => Effect.promise(() => redis.script("FLUSH", "SYNC")))
          yield* renewed
        }).pipe(Effect.scoped)
      )
    })
  })

  describe("every kind of lock", () => {
    const kinds = {
      fair: (name: string) => FairLock.make(name),
      fenced: (name: string) => FencedLock.make(name),
      "non-reentrant": (name: string) => NonReentrantLock.make(name),
      spin: (name: string) => SpinLock.make(name),
      read: (name: string) => ReadWriteLock.make(name).readLock,
      write: (name: string) => ReadWriteLock.make(name).writeLock
    }
    for (const [kind, make] of Object.entries(kinds)) {
      test(`A lock is handed over on a cluster: ${kind}`, function* () {
        const cluster = yield* TheCluster
        const name = freshName("cluster")
        const holder = yield* clusterClient(cluster, patient)
        const waiter = yield* clusterClient(cluster, patient)
        const lock = make(name)
        const rival = kind === "read" ? ReadWriteLock.make(name).writeLock : lock
        const held = yield* sectionUntilTold((body) => holder.run(Lock.withLock(body, lock)))
        const second = yield* Effect.succeed("in").pipe(Lock.withLock(rival), waiter.run, Effect.forkScoped)
        const { owner } = yield* mastersOf(cluster, name)
        const redis = yield* bare(owner)
        if (kind !== "spin") {
          yield* eventually(
            "the waiter is subscribed",
            () => redis.call("PUBSUB", "SHARDCHANNELS", `*{${name}}*`) as Promise<ReadonlyArray<unknown>>,
            (channels) => channels.length > 0
          )
        }
        assert.isUndefined(second.pollUnsafe())
        yield* held.end
        assert.strictEqual(yield* soon("the waiter is served", Fiber.join(second)), "in")
      })
    }
  })

  test("Several locks are acquired together on a cluster, all or none, on whichever masters they are", function* () {
    const cluster = yield* TheCluster
    const one = yield* clusterClient(cluster)
    const other = yield* clusterClient(cluster)
    const locks = Array.from({ length: 8 }, freshName)
    const all = MultiLock.make(locks.map((lock) => Lock.make(lock)))
    yield* one.run(
      Effect.gen(function* () {
        for (const lock of locks) assert.isTrue(yield* other.run(Lock.isLocked(lock)))
      }).pipe(Lock.withLock(all))
    )
    const taken = yield* other.run(one.run(Lock.withLockIfAvailable(Effect.void, all)).pipe(Lock.withLock(locks[7]!)))
    assert.strictEqual(taken._tag, "None")
    for (const lock of locks) assert.isFalse(yield* other.run(Lock.isLocked(lock)))
  })

  describe("an application's own Cluster that is in use already", () => {
    const inUseWith = Effect.fnUntraced(function* (options?: IoRedis.FromClientOptions) {
      const application = yield* applicationInUse(yield* TheCluster)
      const driver = yield* Layer.build(Layer.fresh(IoRedis.fromClient(application, { warnings: [], ...options })))
      return { application, driver: Context.get(driver, RedisDriver.RedisDriver) }
    })
    const inUse = inUseWith()

    /** The Cluster has lost its connection to that master, and forgets it until it may look up again which nodes there are. */
    const forgets = Effect.fnUntraced(function* (application: Cluster, { port }: RedisServer.RedisServer) {
      const refresh = application.refreshSlotsCache.bind(application)
      application.refreshSlotsCache = () => {}
      expectWarning(/^Lost the connection to Redis; connecting again\./)
      const isKnown = () => application.nodes("master").find(({ options }) => options.port === port)
      isKnown()!.disconnect()
      yield* until("it is forgotten", () => isKnown() === undefined)
      return Effect.sync(() => {
        application.refreshSlotsCache = refresh
        refresh()
      })
    })

    test("Each master of an application's own Cluster that is in use already counts as a server of its own", function* () {
      const cluster = yield* TheCluster
      const { driver } = yield* inUse
      const names = new Map<RedisServer.RedisServer, Set<string>>()
      for (const key of Array.from({ length: 30 }, freshName)) {
        const owner = yield* cluster.ownerOf(yield* cluster.slotOf(key))
        names.set(owner, (names.get(owner) ?? new Set()).add(driver.server(key)))
      }
      assert.strictEqual(names.size, 3)
      assert.strictEqual(new Set([...names.values()].flatMap((all) => [...all])).size, 3)
    })

    test("A master to which a Cluster has no connection at the moment fails a scan, rather than to be left out", function* () {
      const cluster = yield* TheCluster
      const lock = freshName("cluster")
      const { owner } = yield* mastersOf(cluster, lock)
      const { application, driver } = yield* inUse
      const client = yield* clientOf(locksOver(Layer.succeed(RedisDriver.RedisDriver, driver)))
      const held = yield* enter(client, lock)
      const names = Effect.map(client.run(Stream.runCollect(Lock.list())), (all) => all.map(({ name }) => name))
      const remember = yield* forgets(application, owner)
      const error = storeError(yield* Effect.exit(names))
      assert.strictEqual(error.reason, "NotConnected")
      assert.include(error.message, `no node is known to serve the slots of 127.0.0.1:${owner.port}`)
      yield* remember
      yield* eventually(
        "it is listed",
        Effect.orElseSucceed(names, (): ReadonlyArray<string> => []),
        (names) => names.includes(lock)
      )
      yield* held.finish
    })

    test("A master to which a Cluster had no connection when reports of losses began tells of losses once there is one", function* () {
      const cluster = yield* TheCluster
      const { owner } = yield* mastersOf(cluster, freshName("cluster"))
      const { application, driver } = yield* inUse
      const remember = yield* forgets(application, owner)
      yield* Effect.forkScoped(Stream.runDrain(driver.invalidations!))
      yield* remember
      const redis = yield* bare(owner)
      yield* eventually(
        "it would tell",
        () => redis.pubsub("NUMSUB", "__redis__:invalidate") as Promise<ReadonlyArray<unknown>>,
        ([, count]) => count === 1,
        "1 minute"
      )
    })

    test("A channel that ends just after another one's slot has moved is given up at the server", function* () {
      const cluster = yield* TheCluster
      const lock = freshName("cluster")
      const { owner } = yield* mastersOf(cluster, lock)
      const { application, driver } = yield* inUse
      const node = application.nodes("master").find(({ options }) => options.port === owner.port)!
      const duplicate = node.duplicate.bind(node)
      const duplicates: Array<Redis> = []
      node.duplicate = (options) => {
        const made = duplicate(options)
        duplicates.push(made)
        return made
      }
      const listener = yield* Effect.forkScoped(Stream.runDrain(driver.subscribe(channelOf(lock))))
      yield* shardSubscribers(owner, lock, 1)
      // what ioredis says of any channel
      for (const made of duplicates) made.emit("moved")
      yield* Fiber.interrupt(listener)
      yield* shardSubscribers(owner, lock, 0)
    })

    test("A subscription that is refused because its slot has moved keeps its connection", function* () {
      const commandTimeout = 600
      yield* undisturbed(commandTimeout, function* (watch) {
        const cluster = yield* TheCluster
        const lock = freshName("cluster")
        const { other, owner, slot } = yield* mastersOf(cluster, lock)
        const redis = yield* bare(owner)
        yield* watch(redis)
        const { application, driver } = yield* inUseWith({ commandTimeout })
        application.refreshSlotsCache = () => {}
        yield* cluster.moveSlot(slot, other)
        yield* Effect.promise(() => redis.config("RESETSTAT"))
        yield* Effect.forkScoped(Stream.runDrain(driver.subscribe(channelOf(lock))))
        // the pauses between them grow: the sixth comes long after a connection that has gone silent would have been replaced
        const afterRefusals = (count: number) =>
          eventually(
            `it is refused ${count} times`,
            async () => Number(/errorstat_MOVED:count=(\d+)/.exec(await redis.info("errorstats"))?.[1] ?? 0),
            (refusals) => refusals >= count
          ).pipe(
            Effect.andThen(Effect.promise(() => redis.client("LIST"))),
            Effect.map((list) => /^id=(\d+) .* cmd=ssubscribe /m.exec(String(list))?.[1])
          )
        const first = yield* afterRefusals(1)
        assert.isDefined(first)
        assert.strictEqual(yield* afterRefusals(6), first)
      })
    })

    test("A node that ioredis drops and adds again at once leaves nothing running at its former connection", function* () {
      const { application } = yield* inUse
      const pool = (application as unknown as { readonly connectionPool: Pool }).connectionPool
      const nodes = application.nodes("master").map(({ options: { host, port } }) => ({ host, port, readOnly: false }))
      const [former] = application.nodes("master")
      const listeners = former!.listenerCount("connect")
      pool.reset(nodes.slice(1))
      pool.reset(nodes)
      yield* until("the former connection has ended", () => former!.status === "end")
      assert.notInclude(application.nodes("master"), former)
      assert.isBelow(former!.listenerCount("connect"), listeners)
    })
  })

  describe("names", () => {
    test("A name is accepted if all its keys share a slot of the cluster, and refused if they do not", function* () {
      const cluster = yield* TheCluster
      const client = yield* clusterClient(cluster)
      const { slot } = yield* Effect.map(Layer.build(IoRedis.layerCluster({ nodes: cluster.urls })), (context) =>
        RedisDriver.RedisDriver.pipe(Effect.provideContext(context))
      ).pipe(Effect.flatten)
      const redis = yield* bare(cluster.nodes[0]!)
      const keySlot = (key: string) => Effect.promise(() => redis.cluster("KEYSLOT", key))
      // every way to place braces in a short name, and a few longer ones
      const shorter = (length: number): ReadonlyArray<string> =>
        length === 0 ? [""] : shorter(length - 1).flatMap((name) => ["{", "}", "a"].map((next) => name + next))
      const samples = [...[1, 2, 3, 4].flatMap(shorter), "ü{🔒}:锁", "ü{🔒:锁", "orders:{5}:{6}", "a{}b{c}", "a}{b}"]
      const answers = new Set<boolean>()
      for (const name of samples) {
        const tagged = name.includes("{") ? name : `{${name}}`
        const keys = [name, `redisson_lock_token:${tagged}`, `redisson_lock__channel:${tagged}`]
        const slots = yield* Effect.forEach(keys, keySlot)
        assert.deepStrictEqual(keys.map(slot), slots, name)
        // what is nothing but a tag is another name's, wherever its keys are
        const together = new Set(slots).size === 1 && !/^\{[^{]+\}$/.test(name)
        answers.add(together)
        const result = yield* Effect.result(client.run(Lock.withLock(Effect.void, name)))
        assert.strictEqual(
          result._tag === "Success" ? "taken" : result.failure._tag,
          together ? "taken" : "InvalidLockName",
          name
        )
      }
      assert.strictEqual(answers.size, 2)
    })

    test("A name of a semaphore or a latch is accepted if all its keys share a slot, and otherwise refused before any command", function* () {
      const cluster = yield* TheCluster
      const client = yield* clusterClient(cluster)
      const redis = yield* bare(cluster.nodes[0]!)
      const keySlot = (key: string) => Effect.promise(() => redis.cluster("KEYSLOT", key))
      const samples = ["a{b", "{a", "a}", "a}b", "{}a", "}{", "a{}b{c}", "{{a}", "{a}}", "{a}:b", "a{b}", "{{a}}", "{"]
      const answers = new Set<string>()
      for (const name of samples) {
        const tagged = name.includes("{") ? name : `{${name}}`
        const semaphoreKeys = [
          name,
          `${tagged}:timeout`,
          `redisson_sc:${tagged}`,
          `effect_redis_lock_grant:${tagged}:1`
        ]
        const latchKeys = [name, `redisson_countdownlatch__channel__{${name}}`]
        const uses = [
          ["semaphore", semaphoreKeys, Semaphore.withPermits(Effect.void, Semaphore.make(name, { permits: 1 }), 1)],
          ["leased semaphore", semaphoreKeys, PermitSemaphore.totalPermits(name)],
          ["latch", latchKeys, CountDownLatch.count(name)]
        ] as const
        for (const [kind, keys, use] of uses) {
          const together = new Set(yield* Effect.forEach(keys, keySlot)).size === 1 && !/^\{[^{]+\}$/.test(name)
          answers.add(`${kind} ${together}`)
          const result = yield* Effect.result(
            client.run(use as Effect.Effect<unknown, { readonly _tag: string }, RedisLock.RedisLock>)
          )
          const expected = together ? "used" : "InvalidLockName"
          assert.strictEqual(result._tag === "Success" ? "used" : result.failure._tag, expected, `${kind} ${name}`)
        }
      }
      assert.strictEqual(answers.size, 6)
    })

    test("Hashes of an application with names that no lock can have on a cluster are left out of a list of locks", function* () {
      const cluster = yield* TheCluster
      const client = yield* clusterClient(cluster)
      const application = yield* applicationInUse(cluster)
      const [name, stem] = [freshName("cluster"), freshName("hash")]
      for (const key of [`${stem}:{}`, `${stem}}`, `${stem}{`]) {
        yield* Effect.acquireRelease(
          Effect.promise(() => application.hset(key, "field", "value")),
          () => Effect.promise(() => application.del(key))
        )
      }
      const listed = yield* Stream.runCollect(Lock.list()).pipe(Lock.withLock(name), client.run)
      assert.deepStrictEqual(
        listed.map((state) => state.name),
        [name]
      )
    })

    test("A name is checked for its slot with the key prefix", function* () {
      const cluster = yield* TheCluster
      const tagged = yield* clusterClient(cluster, { keyPrefix: "{app}:" })
      yield* tagged.run(Lock.withLock(Effect.void, "a}b"))
      const open = yield* clusterClient(cluster, { keyPrefix: "{app:" })
      const error = yield* Effect.flip(open.run(Lock.withLock(Effect.void, "a")))
      assert.strictEqual(error._tag, "InvalidLockName")
    })
  })

  describe("waiting", () => {
    for (const shardedPubSub of ["auto", "off"] as const) {
      test(`A wait on a cluster ends with a message (sharded pub/sub: ${shardedPubSub})`, function* () {
        const cluster = yield* TheCluster
        const lock = freshName("cluster")
        const { owner } = yield* mastersOf(cluster, lock)
        const options = { ...patient, shardedPubSub }
        const holder = yield* enter(yield* clusterClient(cluster, options), lock)
        const waiter = yield* queueUp(yield* clusterClient(cluster, options), lock)
        const redis = yield* bare(owner)
        const command = shardedPubSub === "off" ? "NUMSUB" : "SHARDNUMSUB"
        yield* eventually(
          `somebody is subscribed: ${command}`,
          () => redis.call("PUBSUB", command, channelOf(lock)) as Promise<ReadonlyArray<unknown>>,
          ([, count]) => count === 1
        )
        yield* holder.end
        yield* (yield* waiter.entered).end
        yield* Fiber.join(waiter.fiber)
      })
    }

    test("A wait on a cluster goes on at the master to which the slot moves", function* () {
      const cluster = yield* TheCluster
      const lock = freshName("cluster")
      const { other, owner, slot } = yield* mastersOf(cluster, lock)
      const holder = yield* enter(yield* clusterClient(cluster, patient), lock)
      const waiter = yield* queueUp(yield* clusterClient(cluster, patient), lock)
      yield* shardSubscribers(owner, lock, 1)
      yield* cluster.moveSlot(slot, other)
      yield* shardSubscribers(other, lock, 1)
      assert.isUndefined(waiter.fiber.pollUnsafe())
      yield* holder.end
      yield* (yield* waiter.entered).end
      yield* Fiber.join(waiter.fiber)
      yield* Effect.flatten(holder.exit)
    })
  })

  describe("a slot on the move", () => {
    test("A slot that is being moved keeps a command waiting until it has arrived", function* () {
      const cluster = yield* TheCluster
      const lock = freshName("cluster")
      const { other, slot } = yield* mastersOf(cluster, lock)
      const client = yield* clusterClient(cluster, { commandTimeout: "30 seconds" })
      yield* client.run(Lock.withLock(Effect.void, lock))
      const finish = yield* cluster.beginMoveSlot(slot, other)
      const redis = yield* bare(other)
      yield* Effect.promise(() => redis.config("RESETSTAT"))
      const section = yield* client
        .run(Lock.withLock(Effect.succeed("in"), lock, { waitTime: 0 }))
        .pipe(Effect.forkScoped)
      // more often than it follows redirections
      yield* until(
        "the new owner has turned the command away twenty times",
        async () =>
          section.pollUnsafe() !== undefined ||
          Number(/errorstat_TRYAGAIN:count=(\d+)/.exec(await redis.info("errorstats"))?.[1] ?? 0) >= 20
      )
      assert.isUndefined(section.pollUnsafe())
      yield* finish
      assert.strictEqual(yield* soon("the lock is taken", Fiber.join(section)), "in")
    })

    test("Locks of a slot that stays open, one of them at each master, are renewed", function* () {
      const cluster = yield* TheCluster
      const tag = freshName("cluster")
      const [stays, moves] = [`{${tag}}:stays`, `{${tag}}:moves`]
      const { other, owner, slot } = yield* mastersOf(cluster, stays)
      const client = yield* clusterClient(cluster, { watchdogLeaseTime: "24 seconds", commandTimeout: "2 seconds" })
      const held = yield* sectionUntilTold((body) => client.run(body.pipe(Lock.withLock(stays), Lock.withLock(moves))))
      const [from, to] = [yield* bare(owner), yield* bare(other)]
      yield* Effect.promise(async () => {
        await to.call("CLUSTER", "SETSLOT", slot, "IMPORTING", String(await from.call("CLUSTER", "MYID")))
        await from.call("CLUSTER", "SETSLOT", slot, "MIGRATING", String(await to.call("CLUSTER", "MYID")))
        await from.migrate(other.host, other.port, moves, 0, 5000)
      })
      const leftOfMoved = async () => {
        const [, left] = await Promise.all([to.call("ASKING"), to.pttl(moves)])
        return left
      }
      yield* growsBy("the lock that stays is renewed", () => from.pttl(stays), 1)
      yield* growsBy("the lock that has moved is renewed", leftOfMoved, 1)
      yield* cluster.moveSlot(slot, other)
      yield* held.end
    })

    test("A slot that stays open for too long fails a command, with a reason that says so", function* () {
      const cluster = yield* TheCluster
      const lock = freshName("cluster")
      const { other, slot } = yield* mastersOf(cluster, lock)
      const client = yield* clusterClient(cluster, { commandTimeout: "300 millis" })
      const finish = yield* cluster.beginMoveSlot(slot, other)
      const asked = Effect.exit(client.run(Lock.withLock(Effect.void, lock, { waitTime: 0 })))
      // one that times out, or arrives too late, is told so
      const error = yield* eventually(
        "a command fails because its slot is open",
        async () => storeError(await Effect.runPromise(asked)),
        ({ reason }) => reason === "ClusterDown"
      )
      assert.isTrue(error.isTransient)
      yield* finish
      yield* client.run(Lock.withLock(Effect.void, lock))
    })
  })

  describe("the driver", () => {
    const driverOver = (layer: Layer.Layer<RedisDriver.RedisDriver, unknown>) =>
      Effect.map(Layer.build(Layer.fresh(layer)), (context) => context).pipe(
        Effect.flatMap((context) => Effect.provideContext(RedisDriver.RedisDriver, context))
      )

    test("The cluster driver scans all masters", function* () {
      const cluster = yield* TheCluster
      const driver = yield* driverOver(IoRedis.layerCluster({ nodes: cluster.urls }))
      const client = yield* clusterClient(cluster)
      const locks = Array.from({ length: 12 }, () => `scanned:${freshName("cluster")}`)
      yield* client.run(
        Effect.gen(function* () {
          yield* Effect.forEach(locks, (lock) => Lock.scoped(lock))
          const keys = yield* Stream.runCollect(driver.scan("scanned:*", "hash"))
          assert.sameMembers([...new Set(keys)], locks)
          assert.deepStrictEqual(yield* Stream.runCollect(driver.scan("scanned:*", "zset")), [])
        }).pipe(Effect.scoped)
      )
    })

    test("The cluster driver subscribes to all channels of a slot with one command, and unsubscribes alike", function* () {
      const cluster = yield* TheCluster
      const driver = yield* driverOver(IoRedis.layerCluster({ nodes: cluster.urls }))
      const tag = freshName("cluster")
      const { owner } = yield* mastersOf(cluster, tag)
      const redis = yield* bare(owner)
      yield* Effect.promise(() => redis.config("RESETSTAT"))
      const calls = (command: string) =>
        Effect.promise(async () =>
          Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(await redis.info("commandstats"))?.[1] ?? 0)
        )
      const channels = Array.from({ length: 50 }, (_, i) => `{${tag}}:${i}`)
      yield* Effect.forEach(channels, (channel) => Stream.runHead(driver.subscribe(channel)), {
        concurrency: "unbounded"
      })
      assert.strictEqual(yield* calls("ssubscribe"), 1)
      yield* eventually(
        "nobody is subscribed any more",
        () => redis.call("PUBSUB", "SHARDCHANNELS", `{${tag}}*`) as Promise<ReadonlyArray<unknown>>,
        (left) => left.length === 0
      )
      assert.isAtMost(yield* calls("sunsubscribe"), 3)
    })

    test("The cluster driver needs no more rights than its documentation says", function* () {
      const cluster = yield* TheCluster
      const readme = yield* Effect.promise(() =>
        readFile(new URL("../../packages/ioredis/README.md", import.meta.url), "utf8")
      )
      const [, rule, commands] = /ACL SETUSER locks on (\S+ [^+]*?)(\+[^`#]*)/.exec(readme)!
      const [, more] = /On a cluster the user needs further permissions:\n\n```\n([^`]*)```/.exec(readme)!
      for (const node of cluster.nodes) {
        const redis = yield* bare(node)
        const words = `${rule} ${commands} ${more}`.trim().split(/\s+/)
        yield* Effect.promise(() => redis.call("ACL", "SETUSER", "locks", "on", ...words))
      }
      const nodes = cluster.nodes.map(({ host, port }) => `redis://locks:secret@${host}:${port}`)
      const client = clientOf(
        locksOver(IoRedis.layerCluster({ nodes, shardedPubSub: "auto" }), { ...patient, keyPrefix: "app:" })
      )
      const lock = freshName("cluster")
      const holder = yield* enter(yield* client, lock)
      const waiter = yield* queueUp(yield* client, lock)
      const { owner } = yield* mastersOf(cluster, `app:${lock}`)
      yield* shardSubscribers(owner, `app:${lock}`, 1)
      yield* holder.end
      yield* (yield* waiter.entered).end
      yield* Fiber.join(waiter.fiber)
    })

    test("A master of a cluster that is busy with a script is no reason to do without sharded pub/sub", function* () {
      const cluster = yield* TheCluster
      const own = yield* Effect.acquireRelease(
        Effect.sync(() => new Cluster(cluster.nodes.map(({ host, port }) => ({ host, port })))),
        (own) => Effect.sync(() => own.disconnect())
      )
      yield* until("the cluster is connected", () => own.status === "ready")
      yield* Effect.promise(() => Promise.all(own.nodes("master").map((node) => node.ping())))
      // the first that is asked
      const first = own.nodes("master")[0]!
      const { port } = first.options
      const busy = yield* bare(cluster.nodes.find((node) => node.port === port)!)
      const other = yield* bare(cluster.nodes.find((node) => node.port === port)!)
      yield* Effect.promise(() => busy.config("SET", "lua-time-limit", "10"))
      const script = busy.eval("while true do end", 0).catch(() => {})
      yield* Effect.addFinalizer(() =>
        Effect.promise(async () => {
          await other.script("KILL")
          await script
          await other.config("SET", "lua-time-limit", "5000")
        })
      )
      yield* eventually(
        "it is busy",
        () =>
          other.ping().then(
            () => "",
            (error: Error) => error.message
          ),
        (answer) => answer.startsWith("BUSY")
      )
      // no other one answers before it
      const others = cluster.nodes.filter((node) => node.port !== port)
      yield* Effect.forEach(others, ({ pause }) => pause)
      const resume = Effect.forEach(others, ({ resume }) => Effect.orDie(resume))
      yield* Effect.addFinalizer(() => resume)
      const asked = vi.spyOn(first, "call")
      const building = yield* Effect.forkScoped(Layer.build(IoRedis.fromClient(own, { commandTimeout: "1 minute" })))
      yield* until("it is asked", () => asked.mock.calls.length > 0)
      yield* Effect.promise(() => first.ping().catch(() => {}))
      yield* resume
      const driver = yield* Fiber.join(building)
      assert.strictEqual(Context.get(driver, RedisDriver.RedisDriver).publish, "SPUBLISH")
    })

    test("A command that still waits for its connection to a node when the driver is closed fails", function* () {
      const cluster = yield* TheCluster
      const scope = yield* Scope.make()
      const nodes = IoRedis.layerCluster({
        nodes: cluster.urls,
        // to ask them would connect to all masters
        ...({ shardedPubSub: "on", warnings: [] } as const),
        connectTimeout: "1 minute",
        commandTimeout: "1 minute"
      })
      const driver = yield* Scope.provide(Layer.build(Layer.fresh(nodes)), scope)
      const { eval: evaluate } = Context.get(driver, RedisDriver.RedisDriver)
      const script = { name: "test", sha1: "0".repeat(40), lua: "return 1" }
      const fibers = yield* Effect.forEach(
        Array.from({ length: 12 }, () => freshName()),
        (name) => Effect.forkChild(Effect.flip(evaluate(script, [name], [])), { startImmediately: true })
      )
      yield* Scope.close(scope, Exit.void)
      const errors = yield* soon("all are told", Effect.forEach(fibers, Fiber.join), "1 minute")
      assert.include(
        errors.map(({ reason }) => reason),
        "Closed"
      )
    })

    test("The cluster driver takes a Cluster of the application, and leaves it open", function* () {
      const cluster = yield* TheCluster
      const own = yield* Effect.acquireRelease(
        Effect.sync(() => new Cluster(cluster.nodes.map(({ host, port }) => ({ host, port })))),
        (own) => Effect.sync(() => own.disconnect())
      )
      const lock = freshName("cluster")
      yield* Effect.gen(function* () {
        const client = yield* clientOf(locksOver(IoRedis.fromClient(own), patient))
        const holder = yield* enter(client, lock)
        const waiter = yield* queueUp(yield* clientOf(locksOver(IoRedis.fromClient(own), patient)), lock)
        const { owner } = yield* mastersOf(cluster, lock)
        yield* shardSubscribers(owner, lock, 1)
        yield* holder.end
        yield* (yield* waiter.entered).end
        yield* Fiber.join(waiter.fiber)
      }).pipe(Effect.scoped)
      assert.strictEqual(yield* Effect.promise(() => own.set(lock, "still open")), "OK")
      assert.strictEqual(own.listenerCount("refresh") + own.listenerCount("error"), 0)
    })

    test("The cluster driver refuses a Cluster that changes keys", function* () {
      const own = new Cluster([{ port: 1 }], { lazyConnect: true, keyPrefix: "app:" })
      const error = yield* Effect.flip(driverOver(IoRedis.fromClient(own)))
      assert.match(String(error), /keyPrefix/)
    })
  })
})

describe("a cluster that is not there", () => {
  testLive("A cluster that cannot be reached fails the layer, and says why", function* () {
    const error = yield* Effect.flip(
      Layer.build(IoRedis.layerCluster({ nodes: ["redis://127.0.0.1:1", "redis://127.0.0.1:2"] }))
    )
    assert.deepInclude(error, { _tag: "RedisDriverError", reason: "ConnectionRefused" })
  })

  testLive("A server that is not part of a cluster fails the cluster layer", function* () {
    const server = yield* RedisServer.start()
    const error = yield* Effect.flip(Layer.build(IoRedis.layerCluster({ nodes: [server.url] })))
    assert.match(error.message, /cluster support disabled/)
  })
})

describe("a cluster of which only one master answers", () => {
  testLive("A cluster layer is built if one master answers", function* () {
    const cluster = yield* RedisCluster.start()
    for (const node of cluster.nodes) {
      const redis = yield* bare(node)
      yield* Effect.promise(() => redis.call("ACL", "SETUSER", "locks", "on", ">secret", "~*", "&*", "+@all"))
    }
    // ioredis names them in the order of their slots, but for its startup node: not under the address by which that is one
    const last = yield* cluster.ownerOf(16383)
    const startup = yield* TcpProxy.make({ target: last })
    for (const node of cluster.nodes) if (node !== last) yield* node.pause
    const layer = IoRedis.layerCluster({
      nodes: [`redis://locks:secret@${startup.host}:${startup.port}`],
      // no time-out comes to its help
      ...{ commandTimeout: "1 hour", connectTimeout: "1 hour", warnings: [] }
    })
    const driver = yield* soon("it is built", Layer.build(layer), "1 minute")
    assert.strictEqual(Context.get(driver, RedisDriver.RedisDriver).publish, "SPUBLISH")
  })
})

describe("one server", () => {
  testLive(
    "A connection that is open again does not ask for more than a thousand channels with one command",
    function* () {
      const server = yield* RedisServer.start()
      const driver = Context.get(yield* Layer.build(IoRedis.layer({ url: server.url })), RedisDriver.RedisDriver)
      const redis = yield* bare(server)
      const names = Array.from({ length: 2500 }, (_, i) => `channel:${i}`)
      yield* Effect.forEach(names, (name) => Effect.forkScoped(Stream.runDrain(driver.subscribe(name))))
      const subscribed = eventually(
        "all are subscribed",
        () => redis.pubsub("CHANNELS") as Promise<ReadonlyArray<unknown>>,
        (channels) => channels.length >= names.length
      )
      yield* subscribed
      expectWarning(/^Lost the connection to Redis; connecting again\./)
      yield* Effect.promise(async () => {
        await redis.config("RESETSTAT")
        await redis.call("CLIENT", "KILL", "TYPE", "pubsub")
      })
      yield* subscribed
      const stats = yield* Effect.promise(() => redis.info("commandstats"))
      assert.isAtLeast(Number(/cmdstat_subscribe:calls=(\d+)/.exec(stats)?.[1]), 3)
    }
  )

  testLive("One server is asked for many channels with one command", function* () {
    const server = yield* RedisServer.start()
    const context = yield* Layer.build(IoRedis.layer({ url: server.url }))
    const driver = yield* Effect.provideContext(RedisDriver.RedisDriver, context)
    const redis = yield* bare(server)
    // the first opens the connection
    yield* Stream.runHead(driver.subscribe("first"))
    yield* Effect.promise(() => redis.config("RESETSTAT"))
    yield* Effect.forEach(
      Array.from({ length: 100 }, (_, i) => `channel:${i}`),
      (channel) => Stream.runHead(driver.subscribe(channel)),
      { concurrency: "unbounded" }
    )
    const stats = yield* Effect.promise(() => redis.info("commandstats"))
    assert.match(stats, /cmdstat_subscribe:calls=1,/)
    yield* eventually(
      "nobody is subscribed any more",
      () => redis.pubsub("CHANNELS") as Promise<ReadonlyArray<unknown>>,
      (left) => left.length === 0
    )
  })
})
