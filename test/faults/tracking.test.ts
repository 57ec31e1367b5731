import { RedisSentinel } from "@effect-redis-lock/testing"
import { assert, describe } from "@effect/vitest"
import { NodeRedis } from "@effect/platform-node"
import { Context, type Duration, Effect, Exit, Fiber, Layer, Logger, Scope, Stream } from "effect"
import {
  FairLock,
  Lock,
  type LockLost,
  PermitId,
  PermitSemaphore,
  ReadWriteLock,
  RedisDriver,
  RedisLock,
  Semaphore
} from "effect-redis-lock"
import { IoRedis } from "@effect-redis-lock/ioredis"
import { Redis } from "ioredis"
import { client, type Client, clientOf, clientOver, locks, locksOver } from "../kit/clients.ts"
import { eventually, soon, until } from "../kit/eventually.ts"
import { freshName } from "../kit/names.ts"
import { sectionUntilTold } from "../kit/sections.ts"
import { bare, reconnectsAtOnce } from "../kit/server/bareRedis.ts"
import { clusterClient, mastersOf, TheCluster } from "../kit/server/cluster.ts"
import { isTracked, renewed } from "../kit/server/conditions.ts"
import { behindProxy, onServer } from "../kit/server/onServer.ts"
import { onServers } from "./quorumSite.ts"
import { testLive, suitesOn } from "../kit/test.ts"

/** Only the server can tell of a loss: the next renewal is twenty minutes away. */
const hour = { watchdogLeaseTime: "1 hour" } as const

interface Kind {
  /** A section under the lock of this name. */
  readonly around: (name: string, body: Effect.Effect<void>) => Effect.Effect<void, unknown, RedisLock.RedisLock>
  /** The key that holds it. */
  readonly key: (name: string) => string
}

const kinds: Readonly<Record<string, Kind>> = {
  lock: { around: (name, body) => Lock.withLock(body, name), key: (name) => name },
  "lock with a lease of its own": {
    around: (name, body) => Lock.withLock(body, name, { leaseTime: "1 hour" }),
    key: (name) => name
  },
  "fair lock": { around: (name, body) => Lock.withLock(body, FairLock.make(name)), key: (name) => name },
  "read lock": {
    around: (name, body) => Lock.withLock(body, ReadWriteLock.make(name).readLock),
    key: (name) => name
  },
  "write lock": {
    around: (name, body) => Lock.withLock(body, ReadWriteLock.make(name).writeLock),
    key: (name) => name
  },
  permit: {
    around: (name, body) =>
      Effect.andThen(
        Effect.ignore(Semaphore.trySetPermits(name, 2)),
        Effect.asVoid(PermitSemaphore.withPermit(body, name))
      ),
    key: (name) => `{${name}}:timeout`
  }
}

const losses: Readonly<Record<string, (redis: Redis, key: string) => Promise<unknown>>> = {
  DEL: (redis, key) => redis.del(key),
  UNLINK: (redis, key) => redis.unlink(key),
  "HDEL of the owner": async (redis, key) =>
    (await redis.type(key)) === "zset"
      ? redis.zremrangebyrank(key, 0, -1)
      : redis.hdel(key, ...(await redis.hkeys(key)).filter((field) => field !== "mode")),
  RENAME: (redis, key) => redis.rename(key, `${key}:elsewhere`),
  "PEXPIRE to a time that is over": (redis, key) => redis.pexpire(key, 0),
  SET: (redis, key) => redis.set(key, "mine"),
  "the forceUnlock of Redisson": (redis, key) =>
    redis.eval(
      "if redis.call('del', KEYS[1]) == 1 then redis.call('publish', KEYS[2], ARGV[1]) return 1 else return 0 end",
      2,
      key,
      `redisson_lock__channel:{${key}}`,
      "0"
    ),
  FLUSHALL: (redis) => redis.flushall()
}

const field = (info: string, name: RegExp) => Number(new RegExp(`${name.source}(\\d+)`).exec(info)?.[1] ?? 0)

/** How many commands have been tracked since the counters were reset; before Redis 7.0, how often CLIENT was called. */
const trackedIn = (stats: string) => field(stats, /client(?:\|caching)?:calls=/)
const trackedCommands = async (redis: Redis) => trackedIn(await redis.info("commandstats"))

/** Restricts the user `locks`, if the server can: before Redis 7.0 no rule forbids one subcommand alone. */
const restricts = (redis: Redis, rule: string) =>
  Effect.promise(() =>
    redis.acl("SETUSER", "locks", "reset", "on", ">secret", "~*", "&*", "+@all", ...rule.split(" ")).then(
      () => true,
      (error: Error) => {
        if (!error.message.includes("Unknown command or category")) throw error
        console.log(`Not tried, as the server knows no such rule: ${rule}`)
        return false
      }
    )
  )

/** Waits until the server was asked again to tell of changes, since the counters were reset. */
const isAskedAgain = (redis: Redis) =>
  eventually(
    "the server is asked again",
    () => trackedCommands(redis),
    (count) => count > 0
  )

type Call = (...args: ReadonlyArray<string>) => Promise<unknown>

/** Has the commands that a client is asked to `call` pass through a function. */
const intercept = (redis: Redis, f: (call: Call, ...args: ReadonlyArray<string>) => Promise<unknown>) => {
  const call = redis.call.bind(redis) as Call
  redis.call = ((...args: ReadonlyArray<string>) => f(call, ...args)) as typeof redis.call
}

const hold = ({ run }: Client, name: string, { around }: Kind = kinds.lock!) =>
  sectionUntilTold((body) => run(around(name, body)))

interface Held {
  readonly fiber: Fiber.Fiber<unknown, unknown>
}

const isLost = Effect.fnUntraced(function* ({ fiber }: Held, why = "its loss") {
  const exit = yield* soon(`the section is interrupted by ${why}`, Fiber.await(fiber), "1 minute")
  const error = Exit.isFailure(exit) ? Exit.findErrorOption(exit) : undefined
  assert.strictEqual((error as { readonly value?: LockLost } | undefined)?.value?.reason, "NotOwner")
})

const isHeld = ({ fiber }: Held) => assert.isUndefined(fiber.pollUnsafe())

/** Ends the connections that match; their owners open new ones. */
const cut = async (redis: Redis, matches: RegExp) => {
  const all = String(await redis.client("LIST")).split("\n")
  const ids = all.filter((line) => matches.test(line)).map((line) => /^id=(\d+)/.exec(line)![1]!)
  assert.isAbove(ids.length, 0)
  for (const id of ids) await redis.call("CLIENT", "KILL", "ID", id)
}

/** Ends the connections that match of a client whose lock is tracked, and waits until it is tracked again. */
const cutAndTrackedAgain = Effect.fnUntraced(function* (redis: Redis, matches: RegExp) {
  yield* Effect.promise(() => redis.config("RESETSTAT"))
  yield* Effect.promise(() => cut(redis, matches))
  yield* eventually(
    "the lock is tracked again",
    async () =>
      field(await redis.info("commandstats"), /client(?:\|tracking)?:calls=/) * (await trackedCommands(redis)),
    (count) => count > 0,
    "1 minute"
  )
  yield* isTracked(redis)
})

/** What a client logs of tracking. */
const recording = () => {
  const lines: Array<string> = []
  const logger = Logger.make(({ message }) => {
    const text = String(message)
    if (text.includes("CLIENT TRACKING")) lines.push(text)
  })
  return { lines, layer: Logger.layer([logger]) }
}

describe("a loss that the server tells of", { concurrent: true }, () => {
  for (const [title, kind] of Object.entries(kinds)) {
    testLive(
      `A section under a ${title} is interrupted long before the next renewal, however it was lost`,
      function* () {
        const { redis, server } = yield* onServer()
        const mine = yield* client(server, hour)
        const held = yield* Effect.forEach(Object.keys(losses), (loss) => hold(mine, `report ${loss}`, kind))
        yield* isTracked(redis, held.length)
        for (const [i, [loss, lose]] of Object.entries(losses).entries()) {
          isHeld(held[i]!)
          yield* Effect.promise(() => lose(redis, kind.key(`report ${loss}`)))
          yield* isLost(held[i]!, loss)
        }
      }
    )
  }

  testLive(
    "A section is interrupted long before the next renewal when another client frees its lock by force, also for a waiter",
    function* () {
      const { redis, server } = yield* onServer()
      const mine = yield* client(server, hour)
      const admin = yield* client(server, hour)
      const { readLock, writeLock } = ReadWriteLock.make("read")
      const locks = [Lock.make("plain"), FairLock.make("fair"), readLock, ReadWriteLock.make("written").writeLock]
      const held = yield* Effect.forEach(locks, (lock) =>
        sectionUntilTold((body) => mine.run(Lock.withLock(body, lock)))
      )
      yield* isTracked(redis, held.length)
      const waiters = yield* Effect.forEach(["plain", writeLock], (lock) =>
        Effect.forkScoped(admin.run(Lock.withLock(Effect.void, lock)))
      )
      for (const [i, lock] of locks.entries()) {
        isHeld(held[i]!)
        assert.isTrue(yield* admin.run(Lock.forceRelease(lock)))
        yield* isLost(held[i]!, lock.name)
      }
      for (const waiter of waiters) yield* soon("the waiter is served", Fiber.join(waiter))
    }
  )

  for (const [title, kind] of Object.entries(kinds)) {
    if (title === "permit") continue
    testLive(
      `The lease of a ${title} that somebody has shortened is extended at once, and again the next time`,
      function* () {
        const { redis, server } = yield* onServer()
        const held = yield* hold(yield* client(server, hour), "report", kind)
        yield* isTracked(redis)
        for (let i = 0; i < 2; i++) {
          yield* Effect.promise(() => redis.pexpire("report", 60_000))
          yield* eventually(
            "the lease is extended",
            () => redis.pttl("report"),
            (left) => left > 60_000
          )
          yield* isTracked(redis)
        }
        isHeld(held)
        yield* held.end
      }
    )
  }

  testLive(
    "A section under a permit is interrupted when its semaphore ends, which somebody has given an expiry",
    function* () {
      const { redis, server } = yield* onServer()
      const kind = kinds["permit"]!
      const held = yield* hold(yield* client(server, hour), "report", kind)
      yield* isTracked(redis)
      yield* Effect.promise(() => redis.pexpire(kind.key("report"), 50))
      yield* isLost(held)
      yield* Effect.promise(() => redis.flushall())
    }
  )

  testLive(
    "A permit keeps the lease that somebody has given it, and its section is interrupted when another client takes the permit after that",
    function* () {
      const { redis, server } = yield* onServer()
      const [mine, other] = yield* Effect.all([client(server, hour), client(server, hour)])
      const held = yield* hold(mine, "report", kinds["permit"])
      yield* isTracked(redis)
      const [id] = yield* Effect.promise(() => redis.zrangeBuffer("{report}:timeout", "0", "-1"))
      yield* Effect.promise(() => redis.config("RESETSTAT"))
      yield* other.run(PermitId.updateLeaseTime("report", id!.toString("hex"), "1 second"))
      yield* isAskedAgain(redis)
      yield* soon("the other takes it", other.run(PermitSemaphore.withPermits(Effect.void, "report", 2)), "1 minute")
      yield* isLost(held)
      yield* Effect.promise(() => redis.flushall())
    }
  )

  testLive(
    "Readers whose leases another reader has cut to its own, as Redisson does when it renews, extend them at once, each to its own end",
    function* () {
      const { redis, server } = yield* onServer()
      const mine = yield* client(server, { watchdogLeaseTime: "10 minutes" })
      const reading = (options?: { readonly leaseTime: Duration.Input }) =>
        hold(mine, "report", {
          ...kinds["read lock"]!,
          around: (name, body) => Lock.withLock(body, ReadWriteLock.make(name).readLock, options)
        })
      const held = yield* Effect.all([reading(), reading({ leaseTime: "5 minutes" }), reading({ leaseTime: "1 hour" })])
      const holds = yield* Effect.promise(() => redis.keys("*:rwlock_timeout:1"))
      const leases = async () => {
        const left = await Promise.all(["report", ...holds].map((key) => redis.pttl(key)))
        return left.toSorted((a, b) => b - a)
      }
      // the first time before the server is asked to tell
      for (let i = 0; i < 3; i++) {
        yield* Effect.promise(() => Promise.all(["report", ...holds].map((key) => redis.pexpire(key, 30_000))))
        yield* eventually(
          "all are extended",
          leases,
          ([lock, long, renewed, short]) => Math.min(lock!, long!) > 3_500_000 && renewed! > 400_000 && short! > 200_000
        )
        yield* isTracked(redis)
      }
      held.forEach(isHeld)
      yield* Effect.forEach(held, ({ end }) => end)
    }
  )

  testLive("A reader whose lease another reader has cut extends it to where its longest hold ends", function* () {
    const { redis, server } = yield* onServer()
    const held = yield* hold(yield* client(server), "report", {
      ...kinds["read lock"]!,
      around: (name, body) => {
        const { readLock } = ReadWriteLock.make(name)
        return body.pipe(
          Lock.withLock(readLock, { leaseTime: "5 minutes" }),
          Lock.withLock(readLock, { leaseTime: "1 minute" })
        )
      }
    })
    yield* isTracked(redis)
    const holds = yield* Effect.promise(() => redis.keys("*:rwlock_timeout:*"))
    yield* Effect.promise(() => Promise.all(["report", ...holds].map((key) => redis.pexpire(key, 30_000))))
    yield* eventually(
      "the lease is extended",
      () => Promise.all([redis.pttl("report"), ...holds.map((key) => redis.pttl(key))]),
      (left) => Math.max(...left.slice(1)) > 200_000 && left[0]! > 200_000
    )
    isHeld(held)
    yield* held.end
  })

  testLive(
    "A fixed lease that somebody has shortened together with a shorter one is extended to its own end, and the drift",
    function* () {
      const { redis, server } = yield* onServer()
      const mine = yield* client(server, hour)
      const lasting = (leaseTime: Duration.Input): Kind => ({
        ...kinds.lock!,
        around: (name, body) => Lock.withLock(body, name, { leaseTime })
      })
      const short = yield* hold(mine, "short", lasting("5 minutes"))
      const long = yield* hold(mine, "long", lasting("1 hour"))
      yield* isTracked(redis, 2)
      yield* Effect.promise(() => redis.multi().pexpire("short", 60_000).pexpire("long", 60_000).exec())
      yield* eventually(
        "both are extended",
        () => Promise.all([redis.pttl("short"), redis.pttl("long")]),
        ([short, long]) => short > 200_000 && long > 3_500_000
      )
      // no less than what drift may consume is left when the holder counts it as over
      const held = yield* Effect.promise(() => redis.pttl("long"))
      assert.isAbove(held, 3_600_000 - 30_000)
      yield* Effect.all([short.end, long.end])
    }
  )

  testLive("A section is interrupted when a full server has evicted its lock", function* () {
    const { redis, server } = yield* onServer()
    const held = yield* hold(yield* client(server, hour), "report")
    yield* isTracked(redis)
    yield* Effect.promise(() => redis.config("SET", "maxmemory-policy", "allkeys-random"))
    yield* Effect.promise(() => redis.config("SET", "maxmemory", "100kb"))
    yield* isLost(held)
    yield* Effect.promise(() => redis.config("SET", "maxmemory", "0"))
  })

  for (const [connection, matches] of [
    ["subscriptions", / sub=[1-9]/],
    ["commands", / name=mine .* sub=0 /],
    ["both", / sub=[1-9]| name=mine .* sub=0 /]
  ] as const) {
    testLive(
      `After the connection for ${connection} was lost, the server is asked again to tell of losses`,
      function* () {
        const { redis, server } = yield* onServer()
        const held = yield* hold(yield* client(server, { ...hour, label: "mine" }), "report")
        yield* isTracked(redis)
        yield* cutAndTrackedAgain(redis, matches)
        yield* Effect.promise(() => redis.del("report"))
        yield* isLost(held)
      }
    )
  }

  testLive("What another process does beside a reader or a permit interrupts nobody", function* () {
    const { redis, server } = yield* onServer()
    const [mine, other] = yield* Effect.all([client(server, hour), client(server, hour)])
    for (const title of ["read lock", "permit"]) {
      const kind = kinds[title]!
      const held = yield* hold(mine, title, kind)
      yield* isTracked(redis)
      yield* Effect.promise(() => redis.config("RESETSTAT"))
      yield* other.run(kind.around(title, Effect.void))
      yield* isAskedAgain(redis)
      isHeld(held)
      yield* Effect.promise(() => redis.del(kind.key(title)))
      yield* isLost(held)
    }
    yield* Effect.promise(() => redis.flushall())
  })

  testLive(
    "The own process ends tracking when it enters and leaves under the same name, and begins it again",
    function* () {
      const { redis, server } = yield* onServer()
      const mine = yield* client(server, hour)
      const retracked = isAskedAgain(redis)
      const { readLock } = ReadWriteLock.make("read")
      const held = yield* hold(mine, "read", kinds["read lock"])
      yield* isTracked(redis)
      yield* Effect.promise(() => redis.config("RESETSTAT"))
      // the script that has the server note the key is sent again, with its text
      yield* Effect.promise(() => redis.script("FLUSH"))
      yield* mine.run(Lock.withLock(Effect.void, readLock))
      yield* retracked
      yield* isTracked(redis)
      yield* Effect.promise(() => redis.del("read"))
      yield* isLost(held)

      const scoped = yield* mine.run(Scope.provide(Lock.scoped("report"), yield* Effect.scope))
      yield* Effect.promise(() => redis.config("RESETSTAT"))
      yield* retracked
      yield* scoped.renew()
      yield* Effect.promise(() => redis.config("RESETSTAT"))
      yield* retracked
      // its reply is not waited for
      yield* Effect.flatMap(Effect.forkChild(scoped.renew(), { startImmediately: true }), Fiber.interrupt)
      yield* Effect.promise(() => redis.config("RESETSTAT"))
      yield* retracked
      yield* Effect.promise(() => redis.del("report"))
      yield* soon("the loss is told", Effect.flip(scoped.awaitLost), "1 minute")
      yield* Effect.promise(() => redis.flushall())
    }
  )

  for (const [title, request] of [
    ["read lock", Lock.withLock(Effect.never, ReadWriteLock.make("report").readLock)],
    ["permit", PermitSemaphore.withPermit(Effect.never, "report")]
  ] as const) {
    testLive(
      `The server is asked again to tell of a ${title} after the same process has taken back a request for another`,
      function* () {
        const { redis, server } = yield* onServer()
        const mine = yield* client(server, hour)
        const kind = kinds[title]!
        const held = yield* hold(mine, "report", kind)
        yield* isTracked(redis)
        yield* Effect.promise(() => redis.config("RESETSTAT"))
        const asked = Effect.forkChild(mine.run<unknown, unknown>(request), { startImmediately: true })
        yield* Effect.flatMap(asked, Fiber.interrupt)
        yield* isAskedAgain(redis)
        yield* isTracked(redis)
        yield* Effect.promise(() => redis.del(kind.key("report")))
        yield* isLost(held)
        yield* Effect.promise(() => redis.flushall())
      }
    )
  }

  testLive("A server that was busy with a script when it was asked to tell of losses is asked again", function* () {
    const { redis, server } = yield* onServer()
    yield* Effect.promise(() => redis.config("SET", "lua-time-limit", "10"))
    const mine = yield* client(server, hour)
    // its connection for subscriptions is there
    const waited = yield* hold(yield* client(server, hour), "waited")
    const waiter = yield* Effect.forkChild(mine.run(Lock.withLock(Effect.void, "waited")))
    yield* eventually(
      "it is subscribed",
      () => redis.pubsub("CHANNELS") as Promise<ReadonlyArray<string>>,
      ({ length }) => length > 0
    )
    const held = yield* hold(mine, "report")
    const busyUntil = Number((yield* Effect.promise(() => redis.time()))[0]) + 4
    yield* Effect.promise(() =>
      redis.eval("repeat local now = redis.call('TIME') until tonumber(now[1]) >= tonumber(ARGV[1])", 0, busyUntil)
    )
    yield* isTracked(redis)
    yield* Effect.promise(() => redis.del("report"))
    yield* isLost(held)
    yield* waited.end
    yield* Fiber.join(waiter)
  })

  testLive(
    "A server that was busy when a new connection for subscriptions asked it for its number is asked again, over another one",
    function* () {
      const { proxy, redis, server } = yield* behindProxy()
      yield* Effect.promise(() => redis.config("SET", "lua-time-limit", "10"))
      const shared = yield* Effect.acquireRelease(
        // otherwise ioredis connects once the server is not busy
        Effect.sync(() => new Redis(server.url, { ...reconnectsAtOnce, enableReadyCheck: false })),
        (redis) => Effect.sync(() => redis.disconnect())
      )
      const opened: Array<Redis> = []
      const { host, port } = proxy
      const duplicate = shared.duplicate.bind(shared)
      shared.duplicate = (override) => {
        const client = duplicate({ ...override, host, port })
        opened.push(client)
        return client
      }
      const held = yield* hold(yield* clientOver(shared, hour), "report")
      yield* isTracked(redis)
      const [subscriptions] = opened
      const other = yield* bare(server)
      yield* Effect.promise(() => other.ping())
      const script = redis.eval("while true do end", 0).catch(() => {})
      yield* proxy.dropConnections
      const number = () => subscriptions!.client("ID").then(String, String)
      yield* eventually("it has been asked in vain", number, (answer) => answer.includes("BUSY"))
      yield* Effect.promise(async () => {
        await other.call("SCRIPT", "KILL")
        await script
        await redis.config("RESETSTAT")
      })
      yield* isAskedAgain(redis)
      yield* isTracked(redis)
      yield* Effect.promise(() => redis.del("report"))
      yield* isLost(held)
    }
  )

  testLive(
    "An application's client with a commandTimeout is told of losses although its connection for subscriptions answers later than that",
    function* () {
      const { proxy, redis, server } = yield* behindProxy()
      const shared = yield* bare(server)
      const duplicate = shared.duplicate.bind(shared)
      // not for its own commands: the machine may be busy
      shared.duplicate = (override) => duplicate(Object.assign({ commandTimeout: 200 }, override))
      yield* proxy.delay("400 millis")
      const held = yield* hold(yield* clientOver(shared, { ...hour, subscriptions: proxy }), "report")
      yield* isTracked(redis)
      yield* Effect.promise(() => redis.del("report"))
      yield* isLost(held)
    }
  )

  for (const [title, arrives] of [
    ["", false],
    [", though it was carried out", true]
  ] as const) {
    testLive(
      `A server that did not answer within the commandTimeout of an application's client when it was asked to tell of losses is asked again${title}`,
      function* () {
        const { redis, server } = yield* onServer()
        const shared = yield* bare(server)
        let asked = 0
        intercept(shared, async (call, ...args) => {
          if (args[1] !== "TRACKING" || ++asked > 1) return call(...args)
          if (arrives) await call(...args)
          throw new Error("Command timed out")
        })
        const held = yield* hold(yield* clientOver(shared, hour), "report")
        yield* isTracked(redis)
        yield* Effect.promise(() => redis.del("report"))
        yield* isLost(held)
      }
    )
  }

  for (const command of ["GETREDIR", "TRACKING"]) {
    testLive(
      `A server that was asked to tell of losses within a transaction of the application that was then discarded is asked again: ${command}`,
      function* () {
        const { redis, server } = yield* onServer()
        const shared = yield* bare(server)
        let asked = 0
        intercept(shared, async (call, ...args) => {
          if (args[1] === command && ++asked === 1) await shared.multi({ pipeline: false })
          return call(...args)
        })
        const held = yield* hold(yield* clientOver(shared, hour), "report")
        yield* eventually(
          "the request is queued",
          async () => String(await redis.client("LIST")),
          (clients) => / multi=[1-9]/.test(clients)
        )
        yield* Effect.promise(() => shared.discard())
        yield* isTracked(redis)
        yield* Effect.promise(() => redis.del("report"))
        yield* isLost(held)
      }
    )
  }

  testLive(
    "Of several drivers over one application's client each is told of its losses, also when the first of them is closed",
    function* () {
      const { redis, server } = yield* onServer()
      const shared = yield* bare(server)
      const scope = yield* Scope.make()
      const first = yield* hold(yield* Scope.provide(clientOver(shared, hour), scope), "first")
      yield* isTracked(redis)
      const second = yield* hold(yield* clientOver(shared, hour), "second")
      const third = yield* hold(yield* clientOver(shared, hour), "third")
      yield* isTracked(redis, 3)
      yield* Effect.promise(() => redis.del("second"))
      yield* isLost(second)
      yield* first.end
      yield* Effect.promise(() => redis.config("RESETSTAT"))
      yield* Scope.close(scope, Exit.void)
      yield* isAskedAgain(redis)
      yield* isTracked(redis)
      yield* Effect.promise(() => redis.del("third"))
      yield* isLost(third)
    }
  )

  for (const [title, rule, isLate] of [
    ["", "+@all", false],
    [", though the server did not answer at first whether it does", "+@all", true],
    [", though the locks may not ask whether it does", "-client|getredir", false]
  ] as const) {
    testLive(
      `What the application itself has the server report to its cache is still reported to it${title}`,
      function* () {
        const { redis, server } = yield* onServer()
        if (!(yield* restricts(redis, rule))) return
        const shared = yield* bare({ url: `redis://locks:secret@${server.host}:${server.port}` })
        let asked = 0
        intercept(shared, async (call, ...args) => {
          if (isLate && args[1] === "GETREDIR" && ++asked === 1) throw new Error("Command timed out")
          return call(...args)
        })
        const cache = yield* Effect.acquireRelease(
          Effect.sync(() => new Redis(server.url, { protocol: 2 })),
          (redis) => Effect.sync(() => redis.disconnect())
        )
        const told = new Set<string>()
        cache.on("message", (_, key) => told.add(key))
        yield* Effect.promise(async () => {
          const id = await cache.client("ID")
          await cache.subscribe("__redis__:invalidate")
          await shared.call("CLIENT", "TRACKING", "ON", "REDIRECT", id)
        })
        const { layer, lines } = recording()
        const mine = yield* clientOf(Layer.provide(locksOver(IoRedis.fromClient(shared), hour), layer))
        const held = yield* hold(mine, "report")
        yield* until("the log says that losses are not reported to the holder", () => lines.length > 0)
        yield* Effect.promise(async () => {
          await shared.get("cached")
          await redis.set("cached", "new")
        })
        yield* until("the cache is told", () => told.has("cached"))
        yield* Effect.promise(() => redis.del("cached"))
        yield* held.end
      }
    )
  }

  testLive(
    "A restarted server still tells the application, at a connection with the number that one of the driver had before",
    function* () {
      const { proxy, redis, server } = yield* behindProxy()
      const shared = yield* bare(proxy)
      const driver = yield* Layer.build(IoRedis.fromClient(shared))
      let isTold = false
      const { invalidations } = Context.get(driver, RedisDriver.RedisDriver)
      const reports = yield* Effect.forkScoped(
        Effect.flip(Stream.runForEach(invalidations!, () => Effect.sync(() => void (isTold = true))))
      )
      yield* until("the server tells the driver", () => isTold)
      const redirect = () => shared.call("CLIENT", "GETREDIR")
      const former = yield* Effect.promise(redirect)
      yield* proxy.cut
      yield* server.restart
      yield* Effect.promise(() => redis.ping())
      const cache = yield* eventually(
        "a connection has the same number",
        Effect.flatMap(bare(server), (client) => Effect.promise(() => client.client("ID"))),
        (id) => id === former
      )
      // before the driver: its own listeners come later
      shared.prependListener("ready", () => void shared.call("CLIENT", "TRACKING", "ON", "REDIRECT", cache))
      yield* proxy.restore
      const refusal = yield* soon("the driver leaves that to the application", Fiber.join(reports), "1 minute")
      assert.include(String(refusal.cause), "the application uses CLIENT TRACKING")
      assert.strictEqual(yield* Effect.promise(redirect), cache)
    }
  )

  testLive(
    "The server does not tell of the renewals of the process itself: each is followed by one command that tracks, and nothing is verified",
    function* () {
      const { redis, server } = yield* onServer()
      const mine = yield* client(server, { watchdogLeaseTime: "6 seconds" })
      const held = yield* hold(mine, "report")
      yield* renewed(redis, "report", 1)
      yield* isTracked(redis)
      yield* Effect.promise(() => redis.config("RESETSTAT"))
      yield* renewed(redis, "report", 3)
      const stats = yield* Effect.promise(() => redis.info("commandstats"))
      const renewals = field(stats, /cmdstat_pexpire:calls=/)
      // the counters may have been reset, and read, between a renewal and what follows it
      assert.isAtMost(trackedIn(stats), renewals + 1)
      assert.isAtMost(field(stats, /evalsha:calls=/), 2 * renewals + 1)
      yield* isTracked(redis)
      yield* held.end
    }
  )

  for (const rule of ["-client|tracking", "-client|caching", "-client|id", "resetchannels &redisson_*"]) {
    testLive(
      `A Redis user without permission (${rule}) is told of nothing, which is logged once, and renews its locks`,
      function* () {
        const { redis, server } = yield* onServer()
        if (!(yield* restricts(redis, rule))) return
        const { layer, lines } = recording()
        const url = `redis://locks:secret@${server.host}:${server.port}`
        const mine = yield* clientOf(Layer.provide(locks({ url }, { watchdogLeaseTime: "6 seconds" }), layer))
        const held = yield* hold(mine, "report")
        yield* eventually(
          "the refusal is logged",
          () => lines,
          ({ length }) => length > 0
        )
        yield* renewed(redis, "report", 2)
        assert.notMatch(yield* Effect.promise(() => redis.info("commandstats")), /client\|caching:calls=[1-9]/)
        assert.lengthOf(lines, 1)
        // nor is it asked again over another connection
        yield* Effect.promise(() => redis.acl("LOG", "RESET"))
        yield* Effect.promise(() => cut(redis, /cmd=eval(?:sha)? user=locks/))
        yield* renewed(redis, "report", 2)
        assert.deepStrictEqual(yield* Effect.promise(() => redis.acl("LOG")), [])
        yield* Effect.promise(() => redis.del("report"))
        yield* isLost(held)
      }
    )
  }

  testLive(
    "A client of Effect's Redis service says once that it is told of nothing, and renews its locks",
    function* () {
      const { redis, server } = yield* onServer()
      const { layer, lines } = recording()
      const driver = Layer.provide(RedisDriver.layerRedis, NodeRedis.layer({ url: server.url }))
      const mine = yield* clientOf(Layer.provide(locksOver(driver, { watchdogLeaseTime: "6 seconds" }), layer))
      const held = yield* hold(mine, "report")
      yield* renewed(redis, "report", 2)
      assert.lengthOf(lines, 1)
      yield* Effect.promise(() => redis.del("report"))
      yield* isLost(held)
    }
  )

  testLive(
    "A server of a quorum that refuses to tell of losses is logged once, and does not silence the others",
    function* () {
      const places = yield* onServers(3)
      const { layer, lines } = recording()
      const [silent, first, second] = places
      if (!(yield* restricts(silent!.redis, "-client|tracking"))) return
      const { host, port } = silent!.server
      const urls = [`redis://locks:secret@${host}:${port}`, first!.server.url, second!.server.url]
      const mine = yield* clientOf(Layer.provide(RedisLock.layerQuorum(urls.map((url) => locks({ url }, hour))), layer))
      const held = yield* hold(mine, "report")
      for (const { redis } of [first!, second!]) yield* isTracked(redis)
      yield* eventually(
        "the refusal is logged",
        () => lines,
        ({ length }) => length === 1
      )
      yield* Effect.promise(() => silent!.redis.del("report"))
      yield* Effect.promise(() => first!.redis.del("report"))
      yield* isLost(held)
      assert.lengthOf(lines, 1)
      yield* Effect.promise(() => second!.redis.flushall())
    }
  )

  testLive("A section is interrupted when the master that sentinels name loses its lock", function* () {
    const site = yield* RedisSentinel.start()
    const sentinels = site.sentinels.map(({ url }) => url)
    const mine = yield* clientOf(locksOver(IoRedis.layerSentinel({ sentinels, name: site.name }), hour))
    const held = yield* hold(mine, "report")
    const before = yield* bare(yield* site.master)
    yield* isTracked(before)
    yield* site.failover
    const after = yield* bare(yield* site.master)
    yield* isTracked(after)
    isHeld(held)
    yield* Effect.promise(() => after.del("report"))
    yield* isLost(held)
  })

  testLive("A section on a quorum is interrupted when a majority of the servers has lost its lock", function* () {
    const places = yield* onServers(3)
    const mine = yield* clientOf(RedisLock.layerQuorum(places.map(({ server }) => locks(server, hour))))
    const held = yield* hold(mine, "report")
    for (const { redis } of places) yield* isTracked(redis)
    const [first, second] = places
    yield* Effect.promise(() => first!.redis.config("RESETSTAT"))
    yield* Effect.promise(() => first!.redis.del("report"))
    yield* isAskedAgain(first!.redis)
    isHeld(held)
    yield* Effect.promise(() => second!.redis.del("report"))
    yield* isLost(held)
    yield* Effect.forEach(places, ({ redis }) => Effect.promise(() => redis.flushall()))
  })
})

suitesOn(TheCluster.layer({ replicas: 1 }), { excludeTestServices: true })("on a cluster", (test) => {
  test("Each of two clients over one driver is told of its losses", function* () {
    const cluster = yield* TheCluster
    const driver = yield* Layer.build(IoRedis.layerCluster({ nodes: cluster.urls, connectTimeout: "1 minute" }))
    const [mine, other] = yield* Effect.replicateEffect(clientOf(locksOver(Layer.succeedContext(driver), hour)), 2)
    const name = freshName()
    const held = yield* hold(mine!, name)
    const node = yield* bare((yield* mastersOf(cluster, name)).owner)
    yield* isTracked(node)
    yield* hold(other!, `{${name}}:other`)
    yield* isTracked(node, 2)
    yield* Effect.promise(() => node.del(name))
    yield* isLost(held)
  })

  test("A node of a cluster tells of losses again after the connection for commands to it was lost", function* () {
    const cluster = yield* TheCluster
    const name = freshName()
    const driver = IoRedis.layerCluster({ nodes: cluster.urls, connectTimeout: "1 minute", label: "mine" })
    const node = yield* bare((yield* mastersOf(cluster, name)).owner)
    // of clients that are gone
    const before = field(yield* Effect.promise(() => node.info("stats")), /tracking_total_keys:/)
    // no label, so that it sends nothing by itself
    const held = yield* hold(yield* clientOf(locksOver(driver, { ...hour, label: "" })), name)
    yield* isTracked(node, before + 1)
    yield* cutAndTrackedAgain(node, / name=mine .* sub=0 /)
    yield* Effect.promise(() => node.del(name))
    yield* isLost(held)
  })

  for (const shardedPubSub of ["on", "off"] as const) {
    test(`Each node of a cluster tells of its losses, with sharded pub/sub ${shardedPubSub}`, function* () {
      const cluster = yield* TheCluster
      const mine = yield* clusterClient(cluster, { ...hour, shardedPubSub })
      const names = Array.from({ length: 12 }, freshName)
      const held = yield* Effect.forEach(names, (name) => hold(mine, name))
      const owners = yield* Effect.forEach(names, (name) => Effect.map(mastersOf(cluster, name), ({ owner }) => owner))
      assert.isAbove(new Set(owners).size, 1)
      const nodes = yield* Effect.forEach(owners, bare)
      for (const [i, redis] of nodes.entries()) {
        const there = owners.filter((owner, j) => owner === owners[i] && j >= i)
        yield* isTracked(redis, there.length)
        yield* Effect.promise(() => redis.del(names[i]!))
        yield* isLost(held[i]!)
      }
    })
  }
})
