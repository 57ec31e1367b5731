/**
 * Waiters of real servers that stop, or are killed and started again.
 */
import { assert } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import {
  CountDownLatch,
  FairLock,
  FencedLock,
  Lock,
  MultiLock,
  NonReentrantLock,
  PermitSemaphore,
  ReadWriteLock,
  type RedisLock,
  Semaphore,
  SpinLock
} from "effect-redis-lock"
import type { Redis } from "ioredis"
import { type Client, client } from "../kit/clients.ts"
import { eventually, soon } from "../kit/eventually.ts"
import { connected, growsBy } from "../kit/server/conditions.ts"
import { onServer } from "../kit/server/onServer.ts"
import { type AnyLock, clientsOf, hold, queued, waitFor } from "./kinds.ts"
import { testLive } from "../kit/test.ts"

type Use = Effect.Effect<unknown, unknown, RedisLock.RedisLock>

interface Kind {
  /** Holds what others then wait for, and stays inside. */
  readonly held: (stay: Effect.Effect<never>) => Use
  readonly wait: Use
}

const locked = (lock: AnyLock, rival: AnyLock = lock): Kind => ({
  held: Lock.withLock(rival),
  wait: Lock.withLock(Effect.void, lock)
})

const { readLock } = ReadWriteLock.make("read")
const { writeLock } = ReadWriteLock.make("write")
const permits = PermitSemaphore.make("permits", { permits: 1 })
const semaphore = Semaphore.make("semaphore", { permits: 1 })

const kinds: Record<string, Kind> = {
  plain: locked(Lock.make("plain")),
  fair: locked(FairLock.make("fair")),
  fenced: locked(FencedLock.make("fenced")),
  spin: locked(SpinLock.make("spin")),
  "not reentrant": locked(NonReentrantLock.make("not-reentrant")),
  read: locked(readLock, ReadWriteLock.make("read").writeLock),
  write: locked(writeLock, ReadWriteLock.make("write").readLock),
  "several at once": {
    held: Lock.withLock("several:2"),
    wait: Lock.withLock(Effect.void, MultiLock.make([Lock.make("several:1"), Lock.make("several:2")]))
  },
  semaphore: {
    held: Semaphore.withPermits(semaphore, 1),
    wait: Semaphore.withPermits(Effect.void, semaphore, 1)
  },
  permits: {
    held: PermitSemaphore.withPermit(permits),
    wait: PermitSemaphore.withPermit(Effect.void, permits)
  },
  latch: {
    held: (stay) => Effect.andThen(CountDownLatch.trySetCount("latch", 1), stay),
    wait: CountDownLatch.await("latch")
  }
}

/** What the channels of a kind are called after, where that is not its name here. */
const channelNames: Record<string, string> = { "not reentrant": "not-reentrant", "several at once": "several:2" }

/** Holds it in a fiber of its own, and waits until it does. */
const keep = Effect.fnUntraced(function* ({ run }: Client, { held }: Kind) {
  const inside = yield* Deferred.make<void>()
  const stay = Effect.andThen(Deferred.succeed(inside, undefined), Effect.never)
  const fiber = yield* Effect.forkScoped(Effect.exit(run(held(stay))), { startImmediately: true })
  yield* soon("it is held", Deferred.await(inside))
  return fiber
})

/** Waits until somebody listens to the channels of all these kinds. */
const listening = (redis: Redis, names: ReadonlyArray<string>) =>
  eventually(
    `somebody waits for each of ${names.join(", ")}`,
    () => redis.pubsub("CHANNELS") as Promise<ReadonlyArray<string>>,
    (channels) => names.every((name) => channels.some((channel) => channel.includes(channelNames[name] ?? name)))
  )

const patient = { watchdogLeaseTime: "5 minutes", commandTimeout: 1000 } as const

testLive(
  "Waiters of every kind outlive a server that is killed and started again empty, and so do those that arrive meanwhile",
  function* () {
    const { redis, server } = yield* onServer()
    const holder = yield* client(server, { watchdogLeaseTime: "5 minutes" })
    const mine = yield* client(server, patient)
    for (const kind of Object.values(kinds)) yield* keep(holder, kind)
    const wait = () =>
      Effect.forEach(Object.entries(kinds), ([kind, { wait }]) =>
        Effect.map(Effect.forkScoped(mine.run(wait), { startImmediately: true }), (fiber) => [kind, fiber] as const)
      )
    const before = yield* wait()
    // a spin lock asks by the clock
    yield* listening(
      redis,
      Object.keys(kinds).filter((kind) => kind !== "spin")
    )
    yield* server.kill
    const meanwhile = yield* wait()
    // longer than a command
    yield* Effect.sleep(2500)
    for (const [kind, fiber] of [...before, ...meanwhile]) {
      assert.isUndefined(fiber.pollUnsafe(), `the outage ended a wait: ${kind}`)
    }
    yield* server.restart
    for (const [kind, fiber] of [...before, ...meanwhile]) yield* soon(`${kind} goes on`, Fiber.join(fiber))
    yield* Effect.promise(() => redis.del("semaphore", "permits", "fenced", "{permits}:timeout"))
  }
)

testLive("Fair waiters keep their order while the server stands still for longer than places live", function* () {
  const { redis, server } = yield* onServer()
  const lock = FairLock.make("turn")
  const holding = yield* hold(yield* client(server, patient), lock)
  const waiters = []
  for (let i = 0; i < 3; i++) {
    waiters.push(yield* waitFor(yield* client(server, patient), lock))
    yield* queued(redis, "turn", i + 1)
  }
  const order = yield* queued(redis, "turn", 3)
  yield* server.pause
  // longer than places live
  yield* Effect.sleep(4000)
  yield* server.resume
  // what was sent to it meanwhile has been answered, and the connections are new
  for (const owner of order) {
    yield* growsBy(
      `the client of ${owner} has reported twice`,
      async () => Number(await redis.zscore(clientsOf("turn"), owner.slice(0, 36))),
      2
    )
  }
  assert.deepStrictEqual(yield* queued(redis, "turn", 3), order)
  yield* Effect.retry(holding.release, { times: 5 })
  for (const [i, { entered }] of waiters.entries()) {
    const { owner, release } = yield* entered
    assert.strictEqual(owner, order[i])
    yield* release
  }
})

// each kind through an outage: unit/manyWaiters, in virtual time
for (const kind of ["plain", "permits"]) {
  testLive(
    `2000 waiters of one name in one process are served though the server stands still while they wait: ${kind}`,
    function* () {
      const { redis, server } = yield* onServer()
      const { wait } = kinds[kind]!
      const holder = yield* client(server, { watchdogLeaseTime: "5 minutes" })
      const mine = yield* client(server, { ...patient, commandTimeout: 2000 })
      const holding = yield* keep(holder, kinds[kind]!)
      const waiting = yield* Effect.forkScoped(
        mine.run(Effect.forEach(Array.from({ length: 2000 }), () => wait, { concurrency: "unbounded", discard: true }))
      )
      yield* listening(redis, [kind])
      yield* server.pause
      // longer than a command
      yield* Effect.sleep(3000)
      assert.isUndefined(waiting.pollUnsafe())
      yield* server.resume
      yield* connected(mine)
      yield* Fiber.interrupt(holding)
      yield* soon("everybody is served", Fiber.join(waiting))
      yield* Effect.promise(() => redis.del("permits", "{permits}:timeout"))
    }
  )
}
