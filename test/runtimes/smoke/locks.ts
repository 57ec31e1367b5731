/**
 * What a user of the locks would try first: `locks.js <layers> '<servers>'`. Runs in a folder of its own, over the packed packages.
 */
import { Effect, Fiber, Layer, Logger, Option, References, Schedule } from "effect"
import { FairLock, Lock, PermitSemaphore, ReadWriteLock, type RedisLock } from "effect-redis-lock"
import assert from "node:assert/strict"
import { once } from "node:events"
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { connect } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { count, TIMES } from "./count.ts"
import type { OtherSettings } from "./other.ts"
import { argsOf, program, startPeer } from "./peer.ts"
import { runChecks, type Servers } from "./results.ts"

const [layers, json] = process.argv.slice(2) as [string, string]
const servers = JSON.parse(json) as Servers
const { hasTopologies, makeLive } = (await import(`./${layers}.js`)) as typeof import("./ioredis.ts")

/** Polls so rarely that only a message can have woken whoever comes in time. */
const options = { watchdogLeaseTime: "5 minutes", fallbackInterval: "1 minute", keyPrefix: servers.prefix } as const
const live = makeLive(servers.url, options)
const soon = "20 seconds"

const other = (settings: Pick<OtherSettings, "task" | "name"> & Partial<OtherSettings>) =>
  startPeer(program("other"), [JSON.stringify({ layers, url: servers.url, ...options, ...settings })])

const counting = Effect.acquireRelease(
  Effect.promise(async () => {
    const directory = await mkdtemp(join(tmpdir(), "smoke-"))
    await writeFile(join(directory, "count"), "0")
    return directory
  }),
  (directory) => Effect.promise(() => rm(directory, { recursive: true, force: true }))
)

/** Waits for a lock that another process holds, and is woken by its release. */
const waitForOther = Effect.fnUntraced(function* (name: string) {
  const holder = yield* other({ task: "hold", name })
  yield* holder.says("held")
  assert.deepEqual(yield* Lock.withLockIfAvailable(Effect.void, name), Option.none())
  const waiter = yield* Effect.forkChild(Lock.withLock(Effect.succeed("in"), name))
  yield* Effect.sleep("500 millis")
  yield* holder.tell("release")
  yield* holder.says("done")
  assert.equal(yield* holder.exitCode, 0)
  assert.equal(yield* Effect.timeout(Fiber.join(waiter), soon), "in")
}, Effect.scoped)

/** Uses many locks at once. */
const many = (live: Layer.Layer<RedisLock.RedisLock, unknown>) =>
  Effect.forEach(
    Array.from({ length: 30 }, (_, i) => `lock ${i}`),
    Effect.fnUntraced(function* (name) {
      const holding = yield* Lock.scoped(name)
      assert.equal(yield* holding.isHeld, true)
      assert.equal(yield* Lock.isLocked(name), true)
    }, Effect.scoped),
    { concurrency: "unbounded", discard: true }
  ).pipe(Effect.provide(live))

const checks = {
  "A lock is entered again by its owner, keeps others out, and is free afterwards": Effect.gen(function* () {
    const first = yield* Lock.withLock(
      Effect.gen(function* () {
        const { token } = yield* Lock.currentHolding("plain")
        yield* Lock.withLock(Effect.void, "plain")
        const rival = Lock.withLock(Effect.void, "plain", { waitTime: 0 })
        const refused = yield* Effect.flip(Effect.provide(rival, makeLive(servers.url, options)))
        assert.equal((refused as { readonly _tag: string })._tag, "LockTimeout")
        return token
      }),
      "plain"
    )
    assert.equal(yield* Lock.isLocked("plain"), false)
    const second = yield* Lock.withLock(
      Effect.map(Lock.currentHolding("plain"), ({ token }) => token),
      "plain"
    )
    assert.ok(second > first, `token ${second} after ${first}`)
  }),

  "A lock that another process holds is waited for, and its release wakes the waiter": waitForOther("waited for"),

  "Three processes count under one lock, and no increment is lost": Effect.gen(function* () {
    const file = join(yield* counting, "count")
    const settings = { task: "count", name: "counted", file } as const
    const peers = [yield* other(settings), yield* other(settings)]
    yield* count("counted", file)
    for (const peer of peers) {
      yield* peer.says("done")
      assert.equal(yield* peer.exitCode, 0)
    }
    assert.equal(yield* Effect.promise(() => readFile(file, "utf8")), String(3 * TIMES))
  }).pipe(Effect.scoped),

  "The lock of a process that was killed is free when its lease has run out": Effect.gen(function* () {
    const holder = yield* other({ task: "hold", name: "killed", watchdogLeaseTime: "3 seconds" })
    yield* holder.says("held")
    yield* holder.kill
    yield* Lock.withLock(Effect.void, "killed")
  }).pipe(Effect.scoped),

  "A lease is renewed while its section runs": Effect.gen(function* () {
    const holding = yield* Lock.currentHolding("renewed")
    yield* Effect.sleep("6 seconds")
    yield* holding.ensureHeld
  }).pipe(
    Lock.withLock("renewed"),
    Effect.provide(makeLive(servers.url, { ...options, watchdogLeaseTime: "4 seconds" }))
  ),

  "A section whose lock is taken away is interrupted, and fails with LockLost": Effect.gen(function* () {
    const lost = yield* Effect.never.pipe(
      Lock.withLock("lost"),
      Effect.flip,
      Effect.provide(makeLive(servers.url, { ...options, watchdogLeaseTime: "3 seconds" })),
      Effect.forkChild
    )
    while (!(yield* Lock.forceRelease("lost"))) yield* Effect.sleep("20 millis")
    const error = yield* Effect.timeout(Fiber.join(lost), soon)
    assert.equal((error as { readonly _tag: string })._tag, "LockLost")
  }),

  "A semaphore has no more permits than it was made with, in all processes together": Effect.gen(function* () {
    const semaphore = PermitSemaphore.make("semaphore", { permits: 2 })
    const holder = yield* other({ task: "permit", name: "semaphore" })
    yield* holder.says("held")
    yield* PermitSemaphore.withPermit(
      Effect.gen(function* () {
        assert.equal(yield* PermitSemaphore.availablePermits(semaphore), 0)
        assert.deepEqual(yield* PermitSemaphore.withPermitIfAvailable(Effect.void, semaphore), Option.none())
        const waiter = yield* Effect.forkChild(PermitSemaphore.withPermit(Effect.succeed("in"), semaphore))
        yield* Effect.sleep("500 millis")
        yield* holder.tell("release")
        assert.equal(yield* Effect.timeout(Fiber.join(waiter), soon), "in")
      }),
      semaphore
    )
    assert.equal(yield* holder.exitCode, 0)
  }).pipe(Effect.scoped),

  "Readers share a lock, and a writer waits for them": Effect.gen(function* () {
    const { readLock, writeLock } = ReadWriteLock.make("read and write")
    const writer = yield* Effect.gen(function* () {
      yield* Lock.scoped(readLock)
      yield* Effect.provide(Lock.withLock(Effect.void, readLock), makeLive(servers.url, options))
      const writer = yield* Effect.forkDetach(Lock.withLock(Effect.succeed("written"), writeLock))
      yield* Effect.sleep("300 millis")
      return writer
    }).pipe(Effect.scoped)
    assert.equal(yield* Effect.timeout(Fiber.join(writer), soon), "written")
  }),

  "A fair lock serves its waiters in order": Effect.gen(function* () {
    const lock = FairLock.make("fair")
    const served: Array<number> = []
    const waiters = yield* Lock.withLock(
      Effect.gen(function* () {
        const waiters: Array<Fiber.Fiber<void, unknown>> = []
        for (let i = 0; i < 5; i++) {
          waiters.push(
            yield* Effect.forkDetach(Effect.sync(() => void served.push(i)).pipe(Lock.withLock(lock), Lock.withOwner))
          )
          yield* Effect.sleep("50 millis")
        }
        return waiters
      }),
      lock
    )
    for (const waiter of waiters) yield* Effect.timeout(Fiber.join(waiter), soon)
    assert.deepEqual(served, [0, 1, 2, 3, 4])
  })
}

const topologies = {
  "Thirty locks on a cluster are used at once": many(makeLive(servers.cluster, options)),
  "Thirty locks are used at once on the master that sentinels name": many(makeLive(servers.sentinel, options)),
  ...(servers.tls === undefined
    ? {}
    : { "Thirty locks are used at once over TLS": many(makeLive(servers.tls, options)) })
}

const leastArgs = argsOf("LEAST_ARGS")

const permissions = {
  "A lock is used with no more permissions than docs/runtimes.md names": Effect.gen(function* () {
    const least = yield* startPeer(program("least"), [servers.url, servers.prefix], leastArgs)
    yield* least.says("done")
    assert.equal(yield* least.exitCode, 0)
  }).pipe(Effect.scoped)
}

/** Tells which path through ioredis the driver takes. */
const tellPath = Effect.gen(function* () {
  const logger = Logger.make(({ fiber }) => {
    const { event, path } = fiber.getRef(References.CurrentLogAnnotations)
    if (event === "path") console.log(JSON.stringify({ path }))
  })
  const debug = Layer.mergeAll(Logger.layer([logger]), Layer.succeed(References.MinimumLogLevel, "Debug"))
  yield* Effect.provide(Lock.isLocked("any"), Layer.provide(makeLive(servers.url, options), debug))
})

/** Breaks all connections of other clients. */
const breakConnections = Effect.promise(async () => {
  const { hostname, port } = new URL(servers.url)
  const socket = connect(Number(port), hostname)
  socket.end("CLIENT KILL TYPE pubsub SKIPME yes\r\nCLIENT KILL TYPE normal SKIPME yes\r\nQUIT\r\n")
  socket.resume()
  await once(socket, "close")
})

const afterwards = {
  "When all connections have been broken, a lock is still held, waiting works, and a release still wakes": Effect.gen(
    function* () {
      const holding = yield* Lock.scoped("kept")
      yield* breakConnections
      // transient failures while it reconnects
      yield* Effect.retry(waitForOther("waited for again"), Schedule.spaced("200 millis"))
      yield* holding.ensureHeld
    }
  ).pipe(Effect.scoped)
}

/** What node-redis has not. */
const overIoRedis = Effect.gen(function* () {
  yield* runChecks(topologies)
  if (leastArgs.length > 0) yield* runChecks(permissions)
  yield* tellPath
})

const provided = (checks: Readonly<Record<string, Effect.Effect<void, unknown, RedisLock.RedisLock>>>) =>
  Effect.flatMap(Effect.context<RedisLock.RedisLock>(), (context) =>
    runChecks(
      Object.fromEntries(Object.entries(checks).map(([check, effect]) => [check, Effect.provide(effect, context)]))
    )
  )

await Effect.runPromise(
  provided(checks).pipe(
    Effect.andThen(hasTopologies ? overIoRedis : Effect.void),
    Effect.andThen(provided(afterwards)),
    Effect.provide(live)
  )
)
