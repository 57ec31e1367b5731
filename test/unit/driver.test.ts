import { assert, it } from "@effect/vitest"
import { Cause, Effect, Exit, Layer, Stream } from "effect"
import { Redis } from "effect/persistence"
import { Lock, LockStoreError, RedisDriver, RedisLock, ScriptDeadlines } from "effect-redis-lock"
import { vi } from "vitest"
import { hiding } from "../../packages/ioredis/dist/internal/failure.js"
import { fakeDriver } from "../kit/fakeDriver.ts"
import { test, testLive } from "../kit/test.ts"

it("RedisDriver.reasonOf sorts the errors of Redis and of its clients", () => {
  const cases: ReadonlyArray<readonly [string, string]> = [
    ["OOM command not allowed when used memory > 'maxmemory'.", "OutOfMemory"],
    ["READONLY You can't write against a read only replica.", "ReadOnly"],
    ["MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", "ReadOnly"],
    ["MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist", "PersistenceFailed"],
    ["NOREPLICAS Not enough good replicas to write.", "NotEnoughReplicas"],
    ["LOADING Redis is loading the dataset in memory", "Loading"],
    ["BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.", "Busy"],
    ["NOPERM User locks has no permissions to access one of the keys used as arguments", "NoPermission"],
    ["ERR ACL failure in script: No permissions to access a key script: 1, on @user_script:1.", "NoPermission"],
    ["NOAUTH Authentication required.", "NotAuthenticated"],
    ["WRONGPASS invalid username-password pair or user is disabled.", "NotAuthenticated"],
    ["WRONGTYPE Operation against a key holding the wrong kind of value", "WrongType"],
    ["WRONGTYPE Operation against a key holding the wrong kind of value script: f, on @user_script:1.", "WrongType"],
    ["CROSSSLOT Keys in request don't hash to the same slot", "ClusterMismatch"],
    ["MOVED 3999 127.0.0.1:6381", "ClusterMismatch"],
    ["ERR max number of clients reached", "ConnectionRefused"],
    ["connect ENOENT /run/redis.sock", "ConnectionRefused"],
    ["connect EAGAIN /run/redis.sock", "ConnectionRefused"],
    ["connect ENOBUFS 10.0.0.1:6379 - Local (undefined:undefined)", "ConnectionRefused"],
    ["connect ENOMEM 10.0.0.1:6379 - Local (undefined:undefined)", "ConnectionRefused"],
    ["DENIED Redis is running in protected mode because protected mode is enabled", "NotAuthenticated"],
    ["TRYAGAIN Multiple keys request during rehashing of slot", "ClusterDown"],
    ["Failed to refresh slots cache.", "ConnectionRefused"],
    ["All sentinels are unreachable and retry is disabled. Last error: Connection is closed.", "ConnectionRefused"],
    ["None of startup nodes is available", "ConnectionRefused"],
    ["connect ECONNREFUSED 127.0.0.1:6379", "ConnectionRefused"],
    ["getaddrinfo ENOTFOUND redis.invalid", "ConnectionRefused"],
    ["getaddrinfo EAI_FAIL redis.invalid", "ConnectionRefused"],
    ["read ECONNRESET", "ConnectionLost"],
    // of a connection that stood: what was sent over it may have run
    ["read EHOSTUNREACH", "ConnectionLost"],
    ["write ENETUNREACH", "ConnectionLost"],
    ["read EHOSTDOWN", "ConnectionLost"],
    ["connect EHOSTUNREACH 10.0.0.1:6379", "ConnectionRefused"],
    ["connect EHOSTDOWN 10.0.0.1:6379", "ConnectionRefused"],
    ["Connection is closed.", "ConnectionLost"],
    ["Connection is discarded because a new connection is made", "ConnectionLost"],
    ["Command aborted due to connection close", "ConnectionLost"],
    ["Socket closed unexpectedly", "ConnectionLost"],
    ["The client is offline", "NotConnected"],
    ["Command timed out", "TimedOut"],
    ["connect ETIMEDOUT", "TimedOut"],
    // of ioredis, when a node of a cluster does not say in time which slots it serves
    ["timeout", "TimedOut"],
    ["ERR unknown command", "Failed"]
  ]
  for (const [message, reason] of cases) assert.strictEqual(RedisDriver.reasonOf(new Error(message)), reason, message)
  assert.strictEqual(
    RedisDriver.reasonOf(Object.assign(new AggregateError([new Error("x")], ""), { code: "ECONNREFUSED" })),
    "ConnectionRefused"
  )
  const ofBun: ReadonlyArray<readonly [string, string, string]> = [
    ["Connection closed", "ERR_REDIS_CONNECTION_CLOSED", "ConnectionLost"],
    ["Connection has failed", "ERR_REDIS_CONNECTION_CLOSED", "ConnectionLost"],
    ["Idle timeout reached after 1000ms", "ERR_REDIS_IDLE_TIMEOUT", "ConnectionLost"],
    ["Connection timeout reached after 10000ms", "ERR_REDIS_CONNECTION_TIMEOUT", "TimedOut"],
    ["Connection is closed and offline queue is disabled", "ERR_REDIS_CONNECTION_CLOSED", "NotConnected"]
  ]
  for (const [message, code, reason] of ofBun) {
    assert.strictEqual(RedisDriver.reasonOf(Object.assign(new Error(message), { code })), reason, message)
  }
  class TimeoutError extends Error {}
  assert.strictEqual(RedisDriver.reasonOf(new TimeoutError()), "TimedOut")
})

it("Of two passwords one of which begins with the other neither is shown, in whatever order they come", () => {
  for (const passwords of [
    ["s3cr3t", "s3cr3t-and-more"],
    ["s3cr3t-and-more", "s3cr3t"]
  ]) {
    assert.strictEqual(hiding(passwords)("got s3cr3t-and-more, then s3cr3t"), "got <redacted>, then <redacted>")
  }
})

testLive("A driver that dies with nothing at all ends the request, and says so", function* () {
  const driver = fakeDriver({ eval: () => Effect.die(undefined) })
  const exit = yield* Effect.exit(Lock.withLock(Effect.void, "a", { waitTime: 0 })).pipe(
    Effect.provide(Layer.provide(RedisLock.layer(), driver))
  )
  assert.isTrue(Exit.isFailure(exit) && Cause.hasDies(exit.cause))
})

testLive("A reply that no script gives fails its command, and is not thrown into the driver", function* () {
  let reply: unknown
  const thrown: Array<unknown> = []
  const answer = RedisDriver.evalOf((_script, _keys, _args, onExit) => {
    try {
      onExit(Exit.succeed(reply as RedisDriver.Reply))
    } catch (cause) {
      thrown.push(cause)
    }
    return { cancel: () => {} }
  })
  yield* Effect.gen(function* () {
    for (reply of [null, undefined, "OK", "17", {}, [], ["denied"]]) {
      const error = yield* Effect.flip(Lock.withLock(Effect.void, "a", { waitTime: 0 }))
      assert.isTrue(error instanceof LockStoreError && error.reason === "Failed", `${String(reply)}: ${error}`)
      assert.match(String(error), /the driver gave .* was expected/)
    }
    // what was undone in the background succeeds now
    reply = 1
  }).pipe(Effect.provide(Layer.provide(RedisLock.layer(), fakeDriver({ eval: answer }))))
  assert.deepStrictEqual(thrown, [])
})

test("What wraps or replaces the eval of a driver is called, even if it has all properties of that", function* () {
  const own = RedisDriver.evalOf((_script, _keys, _args, onExit) => {
    onExit(Exit.succeed("own"))
    return { cancel: () => {} }
  })
  const script = { name: "mine", sha1: "", lua: "" }
  const other = () => Effect.succeed("other")
  const spied = { eval: own }
  vi.spyOn(spied, "eval").mockImplementation(other)
  const cases = {
    own,
    wrapped: Object.assign((): ReturnType<typeof own> => other(), own),
    proxied: new Proxy(own, { apply: other }),
    spied: spied.eval
  }
  for (const [name, run] of Object.entries(cases)) {
    const runWithDeadline = yield* ScriptDeadlines.make().pipe(Effect.provide(fakeDriver({ eval: run })))
    assert.strictEqual(yield* runWithDeadline(script, ["a"], []), name === "own" ? "own" : "other", name)
  }
})

test("A driver over Effect's Redis service does not say that it is subscribed where subscribing has failed", function* () {
  const refused = new Redis.RedisError({ cause: new Error("ERR max number of clients reached") })
  const redis = yield* Redis.make({
    send: () => Effect.fail(refused),
    subscribe: () => Effect.fail(refused),
    connect: Effect.fail(refused)
  })
  const { subscribe } = yield* Effect.provide(RedisDriver.RedisDriver, RedisDriver.layerRedis).pipe(
    Effect.provideService(Redis.Redis, redis)
  )
  const signals: Array<unknown> = []
  const error = yield* Effect.flip(
    Stream.runForEach(subscribe("a"), (signal) => Effect.sync(() => void signals.push(signal)))
  )
  assert.strictEqual(error.reason, "ConnectionRefused")
  assert.deepStrictEqual(signals, [])
})
