/**
 * Grants that wait for disks, on a server that can: Redis 7.2 or newer, or Valkey.
 */
import { RedisServer } from "@effect-redis-lock/testing"
import { assert, describe, it } from "@effect/vitest"
import { Effect, type Exit, type Scope } from "effect"
import { Lock, LockNotReplicated, PermitSemaphore, ReadWriteLock } from "effect-redis-lock"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { client } from "../kit/clients.ts"
import { eventually } from "../kit/eventually.ts"
import { storeError } from "../kit/exits.ts"
import { bare } from "../kit/server/bareRedis.ts"
import { commandsOf } from "../kit/server/commandsOf.ts"
import { serverKnows } from "../kit/server/knows.ts"
import { replicasOnline } from "../kit/server/replicated.ts"

const directory = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(tmpdir(), "fsync-"))),
  (path) => Effect.promise(() => rm(path, { recursive: true, force: true }))
)

/** A server with an append-only file, which a restart reads. */
const durable = Effect.fnUntraced(function* (
  ...args: ReadonlyArray<string>
): Effect.fn.Return<
  { readonly server: RedisServer.RedisServer; readonly redis: Effect.Success<ReturnType<typeof bare>> },
  RedisServer.RedisServerError,
  Scope.Scope
> {
  const dir = yield* directory
  const own = ["--appendonly", "yes", "--dir", dir, "--repl-diskless-sync-delay", "0"]
  const server = yield* RedisServer.start({ args: [...own, ...args] })
  return { server, redis: yield* bare(server) }
})

const notOnDisk = (exit: Exit.Exit<unknown, unknown>): LockNotReplicated => {
  const error = storeError(exit)
  assert.strictEqual(error.reason, "NotReplicated", error.message)
  assert.instanceOf(error.cause, LockNotReplicated)
  return error.cause
}

const within = "2 minutes"
const { readLock } = ReadWriteLock.make("readers")
const permits = PermitSemaphore.make("permits", { permits: 3 })

describe.skipIf(!(await serverKnows("WAITAOF")))("grants that wait for disks", () => {
  it.live("A grant that waits for the master's disk is there after the master was killed and has read its file", () =>
    Effect.gen(function* () {
      const { redis, server } = yield* durable("--appendfsync", "everysec")
      const { run } = yield* client(server, {
        acknowledge: { replicas: 0, fsync: "master", within },
        watchdogLeaseTime: "10 minutes"
      })
      yield* run(
        Effect.gen(function* () {
          yield* Lock.scoped("a")
          yield* Lock.scoped(readLock)
          yield* PermitSemaphore.scoped(permits)
          const held = ["a", "readers", "{permits}:timeout"]
          assert.strictEqual(yield* Effect.promise(() => redis.exists(...held)), 3)
          yield* server.kill
          yield* server.restart
          yield* eventually(
            "the server has read its file",
            () => redis.exists(...held).catch(() => 0),
            (count) => count === 3
          )
          const rival = yield* client(server)
          assert.isTrue(yield* rival.run(Lock.isLocked("a")))
        }).pipe(Effect.scoped)
      )
    }).pipe(Effect.scoped)
  )

  it.live("A grant is refused, and undone, where the master does not write to its disk in time", () =>
    Effect.gen(function* () {
      // leaves it to the system when to write
      const { redis, server } = yield* durable("--appendfsync", "no")
      const { run } = yield* client(server, { acknowledge: { replicas: 0, fsync: "master", within: "200 millis" } })
      const refused = notOnDisk(yield* Effect.exit(run(Lock.withLock(Effect.die("inside"), "a"))))
      assert.include(refused, { lock: "a", disk: "master" })
      yield* eventually(
        "the grant is undone",
        () => redis.exists("a"),
        (count) => count === 0
      )
      yield* Effect.promise(() => redis.config("SET", "appendfsync", "always"))
      yield* run(Lock.withLock(Effect.void, "a", { acknowledge: { replicas: 0, fsync: "master", within } }))
    }).pipe(Effect.scoped)
  )

  it.live(
    "With fsync on replicas a grant waits for the disks of the master and of the replicas, and with fsync on the master for its own",
    () =>
      Effect.gen(function* () {
        const { redis, server } = yield* durable("--appendfsync", "always")
        const replica = yield* durable("--appendfsync", "always", "--replicaof", server.host, String(server.port))
        yield* replicasOnline(redis, 1)
        const { run } = yield* client(server)
        const use = (fsync: "master" | "replicas", within: "2 minutes" | "200 millis") =>
          run(Lock.withLock(Effect.void, "a", { acknowledge: { replicas: "all", fsync, within } }))
        yield* use("replicas", within)
        yield* use("master", within)
        yield* Effect.promise(() => replica.redis.config("SET", "appendfsync", "no"))
        yield* use("master", within)
        assert.include(notOnDisk(yield* Effect.exit(use("replicas", "200 millis"))), { wanted: 1, acknowledged: 0 })
        yield* Effect.promise(() => replica.redis.config("SET", "appendfsync", "always"))
        yield* use("replicas", within)
      }).pipe(Effect.scoped)
  )

  it.live("Grants of one moment share their wait for the disk", () =>
    Effect.gen(function* () {
      const { redis, server } = yield* durable("--appendfsync", "everysec")
      const { run } = yield* client(server, { acknowledge: { replicas: 0, fsync: "master", within } })
      const many = run(
        Effect.forEach(
          Array.from({ length: 40 }, (_, i) => `lock ${i}`),
          (name) => Lock.withLock(Effect.void, name),
          { concurrency: "unbounded", discard: true }
        )
      )
      yield* many
      const { commands } = yield* commandsOf(redis, many)
      const waits = Number.parseInt(commands.find((command) => command.endsWith(" waitaof")) ?? "0", 10)
      assert.isAtLeast(waits, 1)
      assert.isBelow(waits, 10)
    }).pipe(Effect.scoped)
  )
})
