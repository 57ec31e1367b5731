import { assert } from "@effect/vitest"
import { Effect, Layer, Option, Schedule } from "effect"
import { Lock, ReadWriteLock } from "effect-redis-lock"
import * as Counter from "./Counter.ts"
import { bracedName, longLease, Site, soon, timed, waiting, watchdogLease, withRedisson } from "./harness.ts"
import * as JavaClient from "./JavaClient.ts"
import { lockSuite } from "./lockSuite.ts"
import { freshName } from "../kit/names.ts"
import { growsBy, isTracked, lockKey } from "../kit/server/conditions.ts"

lockSuite("write lock")

withRedisson("read-write lock", (test) => {
  /** Writes as another client, which knows nothing of the readers of this one. */
  const written = Effect.fnUntraced(function* (writeLock: ReadWriteLock.ReadWriteLock["writeLock"]) {
    const { locks } = yield* Site
    const another = yield* Layer.build(locks())
    return yield* Effect.provideContext(Lock.withLock(Effect.succeed("written"), writeLock), another)
  })

  for (const [names, newName] of [
    ["", freshName],
    [", the name has braces", bracedName]
  ] as const) {
    test(`readers of both share, and a writer in Java comes after the last of them${names}`, function* () {
      const { java } = yield* Site
      const name = newName()
      const [reader, writer] = [java.thread("reader"), java.thread("writer")]
      const holding = yield* Lock.scoped(ReadWriteLock.make(name).readLock, { leaseTime: longLease })
      assert.isTrue(yield* reader.run<boolean>("read", name, "acquire", { wait: 0, lease: longLease }))
      const turn = yield* waiting(
        name,
        writer.run<boolean>("write", name, "acquire", { wait: longLease, lease: longLease })
      )
      yield* reader.run("read", name, "release")
      assert.isTrue(yield* reader.run("read", name, "isLocked"), "TypeScript still reads")
      yield* holding.release
      assert.isTrue(yield* turn)
      yield* writer.run("write", name, "release")
    })

    test(`readers of both share, and a writer in TypeScript comes after the last of them${names}`, function* () {
      const { java } = yield* Site
      const name = newName()
      const reader = java.thread("reader")
      const { readLock, writeLock } = ReadWriteLock.make(name)
      yield* reader.run("read", name, "acquire", { lease: longLease })
      const holding = yield* Lock.scoped(readLock, { leaseTime: longLease })
      const turn = yield* waiting(name, written(writeLock))
      yield* holding.release
      assert.isTrue(yield* Lock.isLocked(readLock), "Java still reads")
      yield* reader.run("read", name, "release")
      assert.strictEqual(yield* turn, "written")
    })

    test(`a writer of either lets all readers of both in${names}`, function* () {
      const { java } = yield* Site
      const name = newName()
      const { readLock, writeLock } = ReadWriteLock.make(name)
      const writer = java.thread("writer")
      const readers = [1, 2, 3].map((index) => java.thread(`reader ${index}`))

      const holding = yield* Lock.scoped(writeLock, { leaseTime: longLease })
      const javas = yield* waiting(
        name,
        Effect.all(
          readers.map((reader) => reader.run<boolean>("read", name, "acquire", { wait: longLease, lease: longLease })),
          { concurrency: "unbounded" }
        ),
        { attempts: 6 }
      )
      yield* holding.release
      assert.deepStrictEqual(yield* javas, [true, true, true])
      for (const reader of readers) yield* reader.run("read", name, "release")

      yield* writer.run("write", name, "acquire", { lease: longLease })
      const all = Effect.all(
        [1, 2, 3].map((index) => Lock.withLock(Effect.succeed(index), readLock)),
        {
          concurrency: "unbounded"
        }
      )
      const ours = yield* waiting(name, all)
      yield* writer.run("write", name, "release")
      assert.deepStrictEqual(yield* ours, [1, 2, 3])
    })
  }

  test("With many readers and writers of both languages no increment is lost, and no reader sees a writer", function* () {
    const { java } = yield* Site
    const name = freshName("interop")
    const { readLock, writeLock } = ReadWriteLock.make(name)
    const counter = yield* Counter.make
    const ignored = yield* Counter.make
    const look = Effect.gen(function* () {
      const seen = counter.value()
      yield* Effect.yieldNow
      yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      assert.strictEqual(counter.value(), seen, "somebody wrote while we read")
    })
    yield* Effect.all(
      [
        java.thread("writer").run("write", name, "count", { port: counter.port, times: 100 }),
        java.thread("reader").run("read", name, "count", { port: ignored.port, times: 100 }),
        Effect.repeat(Lock.withLock(counter.increment, writeLock), Schedule.recurs(99)),
        Effect.repeat(Lock.withLock(look, readLock), Schedule.recurs(99))
      ],
      { concurrency: "unbounded", discard: true }
    )
    assert.strictEqual(counter.value(), 200)
  })

  test("a Java writer and a Java reader have their turn among clients that hand the lock over to each other", function* () {
    const { java, locks } = yield* Site
    const name = freshName("interop")
    const { readLock, writeLock } = ReadWriteLock.make(name)
    const counter = yield* Counter.make
    const ignored = yield* Counter.make
    const clients = yield* Effect.forEach([1, 2, 3], () => Layer.build(Layer.fresh(locks())))
    const writes = Effect.forever(Lock.withLock(Effect.sleep(1), writeLock))
    const reads = Effect.forever(Lock.withLock(Effect.sleep(1), readLock))
    const ours = clients.map((client) =>
      Effect.provideContext(Effect.all([writes, writes, reads], { concurrency: "unbounded" }), client)
    )
    const javas = [
      java.thread("writer").run("write", name, "count", { port: counter.port, times: 20 }),
      java.thread("reader").run("read", name, "count", { port: ignored.port, times: 20 })
    ]
    yield* Effect.raceFirst(
      Effect.all(javas, { concurrency: "unbounded", discard: true }),
      Effect.all(ours, { concurrency: "unbounded", discard: true })
    )
    assert.strictEqual(counter.value(), 20)
  })

  test("a dead Java reader holds up a TypeScript writer for its own lease, though another reader lives", function* () {
    const { nodes, url } = yield* Site
    const name = freshName("interop")
    const { readLock, writeLock } = ReadWriteLock.make(name)
    const doomed = yield* JavaClient.start({ address: url, watchdogTimeout: watchdogLease })
    yield* doomed.thread("zombie").run("read", name, "acquire")
    const holding = yield* Lock.scoped(readLock, { leaseTime: longLease })
    const writer = yield* waiting(name, timed(written(writeLock)))
    yield* doomed.die
    // until the zombie's hold has run out; only then the last of the living readers frees the lock
    yield* soon(
      "the zombie's hold runs out",
      Effect.repeat(
        Effect.promise(() => nodes[0]!.keys(`*${name}*rwlock_timeout*`)),
        { until: (keys) => keys.length === 1 }
      )
    )
    const releasedAt = performance.now()
    yield* holding.release
    const { at } = yield* writer
    assert.isBelow(at - releasedAt, 10_000)
  })

  test("a dead Java reader alone is over with its lease", function* () {
    const { url } = yield* Site
    const name = freshName("interop")
    const doomed = yield* JavaClient.start({ address: url, watchdogTimeout: watchdogLease })
    yield* doomed.thread("zombie").run("read", name, "acquire")
    const writer = yield* waiting(name, Lock.withLock(Effect.succeed("written"), ReadWriteLock.make(name).writeLock))
    yield* doomed.die
    assert.strictEqual(yield* writer, "written")
  })

  test("the watchdog of each keeps the other's writer out for longer than a lease", function* () {
    const { java } = yield* Site
    const [javas, typeScripts] = [freshName("interop"), freshName("interop")]
    const [reader, writer] = [java.thread("reader"), java.thread("writer")]
    yield* reader.run("read", javas, "acquire")
    yield* Lock.scoped(ReadWriteLock.make(typeScripts).readLock)
    const until = performance.now() + 1.5 * watchdogLease
    while (performance.now() < until) {
      assert.isTrue(Option.isNone(yield* Lock.tryScoped(ReadWriteLock.make(javas).writeLock)), "TypeScript wrote")
      assert.isFalse(yield* writer.run("write", typeScripts, "tryAcquire"), "Java wrote")
      yield* Effect.sleep(100)
    }
    yield* reader.run("read", javas, "release")
  })

  test("a renewal of a Java reader, which gives all readers its own lease, does not end the longer one of ours", function* () {
    const { java, nodes, url } = yield* Site
    const redis = nodes[0]!
    const name = freshName("interop")
    const { readLock } = ReadWriteLock.make(name)
    const holding = yield* Lock.scoped(readLock, { leaseTime: longLease })
    yield* isTracked(redis)
    const doomed = yield* JavaClient.start({ address: url, watchdogTimeout: watchdogLease })
    yield* doomed.thread("reader").run("read", name, "acquire")
    const javas = (yield* Effect.promise(() => redis.keys(`*${doomed.id}*rwlock_timeout*`)))[0]!
    yield* growsBy("Java renews", () => redis.pttl(javas), 2)
    yield* doomed.die
    yield* lockKey(redis, javas, "gone")
    assert.isAbove(yield* Effect.promise(() => redis.pttl(name)), longLease / 2)
    yield* holding.ensureHeld
    assert.isFalse(yield* java.thread("writer").run("write", name, "tryAcquire"))
  })

  test("a writer in TypeScript that goes on reading lets Java's readers in, and no writer", function* () {
    const { java } = yield* Site
    const name = freshName("interop")
    const { readLock, writeLock } = ReadWriteLock.make(name)
    const [reader, writer] = [java.thread("reader"), java.thread("writer")]
    yield* Effect.gen(function* () {
      const writing = yield* Lock.scoped(writeLock, { leaseTime: longLease })
      const reading = yield* Lock.scoped(readLock, { leaseTime: longLease })
      const turn = yield* waiting(
        name,
        reader.run<boolean>("read", name, "acquire", { wait: longLease, lease: longLease })
      )
      yield* writing.release
      assert.isTrue(yield* turn)
      assert.isFalse(yield* writer.run("write", name, "tryAcquire"))
      yield* reader.run("read", name, "release")
      assert.isFalse(yield* writer.run("write", name, "tryAcquire"))
      yield* reading.release
      assert.isTrue(yield* writer.run("write", name, "tryAcquire"))
      yield* writer.run("write", name, "release")
    }).pipe(Lock.withOwner)
  })

  test("a writer in Java that goes on reading is a reader to TypeScript", function* () {
    const { java } = yield* Site
    const name = freshName("interop")
    const { readLock, writeLock } = ReadWriteLock.make(name)
    const thread = java.thread("thread")
    yield* thread.run("write", name, "acquire", { lease: longLease })
    yield* thread.run("read", name, "acquire", { lease: longLease })
    assert.isTrue(Option.isNone(yield* Effect.scoped(Lock.tryScoped(readLock))))
    yield* thread.run("write", name, "release")
    assert.isTrue(Option.isSome(yield* Effect.scoped(Lock.tryScoped(readLock))))
    assert.isTrue(Option.isNone(yield* Effect.scoped(Lock.tryScoped(writeLock))))
    yield* thread.run("read", name, "release")
    assert.isTrue(Option.isSome(yield* Effect.scoped(Lock.tryScoped(writeLock))))
  })
})
