/**
 * Waiters of real servers that stop, or are killed and started again.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
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
import { pathOfThisRun } from "../kit/commandPath.ts"
import { client } from "../kit/clients.ts"
import { soon } from "../kit/eventually.ts"
import { onServer } from "../kit/server/onServer.ts"
import { type AnyLock, hold, queued, waitFor } from "./kinds.ts"

type Use = Effect.Effect<unknown, unknown, RedisLock.RedisLock>

interface Kind {
  readonly held: Use
  readonly wait: Use
}

const locked = (lock: AnyLock, rival: AnyLock = lock): Kind => ({
  held: Lock.withLock(Effect.never, rival),
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
    held: Lock.withLock(Effect.never, "several:2"),
    wait: Lock.withLock(Effect.void, MultiLock.make([Lock.make("several:1"), Lock.make("several:2")]))
  },
  semaphore: {
    held: Semaphore.withPermits(Effect.never, semaphore, 1),
    wait: Semaphore.withPermits(Effect.void, semaphore, 1)
  },
  permits: {
    held: PermitSemaphore.withPermit(Effect.never, permits),
    wait: PermitSemaphore.withPermit(Effect.void, permits)
  },
  latch: {
    held: Effect.andThen(CountDownLatch.trySetCount("latch", 1), Effect.never),
    wait: CountDownLatch.await("latch")
  }
}

const patient = { watchdogLeaseTime: "5 minutes", commandTimeout: 1000 } as const

describe("those who wait", () => {
  it.live(
    "Waiters of every kind outlive a server that is killed and started again empty, and so do those that arrive meanwhile",
    onServer(({ redis, server }) =>
      Effect.gen(function* () {
        const holder = yield* client(server, patient)
        const mine = yield* client(server, patient)
        for (const { held } of Object.values(kinds)) {
          yield* Effect.forkScoped(Effect.exit(holder.run(held)), { startImmediately: true })
        }
        yield* Effect.sleep(500)
        const wait = () =>
          Effect.forEach(Object.entries(kinds), ([kind, { wait }]) =>
            Effect.map(Effect.forkScoped(mine.run(wait), { startImmediately: true }), (fiber) => [kind, fiber] as const)
          )
        const before = yield* wait()
        yield* Effect.sleep(500)
        yield* server.kill
        const meanwhile = yield* wait()
        // longer than a lease, or a command
        yield* Effect.sleep(2500)
        for (const [kind, fiber] of [...before, ...meanwhile]) {
          assert.isUndefined(fiber.pollUnsafe(), `the outage ended a wait: ${kind}`)
        }
        yield* server.restart
        for (const [kind, fiber] of [...before, ...meanwhile]) yield* soon(`${kind} goes on`, Fiber.join(fiber))
        yield* Effect.promise(() => redis.del("semaphore", "permits", "fenced", "{permits}:timeout"))
      })
    )
  )

  it.live(
    "Fair waiters keep their order while the server stands still for longer than places live",
    onServer(({ redis, server }) =>
      Effect.gen(function* () {
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
        yield* Effect.sleep(1500)
        assert.deepStrictEqual(yield* queued(redis, "turn", 3), order)
        yield* Effect.retry(holding.release, { times: 5 })
        for (const [i, { entered }] of waiters.entries()) {
          const { owner, release } = yield* entered
          assert.strictEqual(owner, order[i])
          yield* release
        }
      })
    )
  )

  for (const kind of ["plain", "read", "write", "semaphore", "permits", "latch"]) {
    it.live(
      `2000 waiters of one name in one process are served though the server stands still while they wait: ${kind}`,
      onServer(({ redis, server }) =>
        Effect.gen(function* () {
          const { held, wait } = kinds[kind]!
          const holder = yield* client(server, patient)
          // the plain path through ioredis takes longer for 2000 commands: on a busy machine a short lease ends meanwhile
          const watchdogLeaseTime = pathOfThisRun === "plain" ? 10_000 : 1500
          const mine = yield* client(server, { ...patient, watchdogLeaseTime, commandTimeout: 2000 })
          const holding = yield* Effect.forkScoped(holder.run(held), { startImmediately: true })
          yield* Effect.sleep(300)
          const waiting = yield* Effect.forkScoped(
            mine.run(
              Effect.forEach(Array.from({ length: 2000 }), () => wait, { concurrency: "unbounded", discard: true })
            )
          )
          yield* Effect.sleep(500)
          yield* server.pause
          // longer than a lease, or a command
          yield* Effect.sleep(3000)
          assert.isUndefined(waiting.pollUnsafe())
          yield* server.resume
          yield* Effect.sleep(500)
          yield* Fiber.interrupt(holding)
          if (kind === "latch") yield* holder.run(CountDownLatch.delete("latch"))
          yield* soon("everybody is served", Fiber.join(waiting))
          yield* Effect.promise(() => redis.del("semaphore", "permits", "{permits}:timeout"))
        })
      )
    )
  }
})
