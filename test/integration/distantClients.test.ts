/**
 * Clients that take no places, as Redisson in Java, and are far from the server: their requests come long after the release that has woken
 * them.
 */
import { RedisServer, TcpProxy } from "@effect-redis-lock/testing"
import { assert } from "@effect/vitest"
import { Effect, Queue } from "effect"
import { Lock, ReadWriteLock, type RedisLock, Semaphore } from "effect-redis-lock"
import { client } from "../kit/clients.ts"
import { eventually } from "../kit/eventually.ts"
import { bare } from "../kit/server/bareRedis.ts"
import { testLive } from "../kit/test.ts"

const name = "ledger"
const semaphore = Semaphore.make(name, { permits: 1 })

/** What a kind is to Java: how a thread asks for it, and how it gives it back. */
interface Kind {
  readonly section: (body: Effect.Effect<void>) => Effect.Effect<unknown, unknown, RedisLock.RedisLock>
  readonly channel: string
  readonly acquire: string
  readonly release: string
}

const thread = "bbbbbbbb-0000-4000-8000-000000000000:77"
const plain = {
  channel: `redisson_lock__channel:{${name}}`,
  acquire: `if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
    redis.call('HSET', KEYS[1], '${thread}', 1) redis.call('PEXPIRE', KEYS[1], 30000) return 1`,
  release: "redis.call('DEL', KEYS[1]) redis.call('PUBLISH', ARGV[1], 0)"
}

const kinds: Record<string, Kind> = {
  "a plain lock": { ...plain, section: Lock.withLock(name) },
  "a write lock": {
    section: Lock.withLock(ReadWriteLock.make(name).writeLock),
    channel: `redisson_rwlock:{${name}}`,
    acquire: `if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
      redis.call('HSET', KEYS[1], 'mode', 'write', '${thread}:write', 1) redis.call('PEXPIRE', KEYS[1], 30000) return 1`,
    release: "redis.call('DEL', KEYS[1]) redis.call('PUBLISH', ARGV[1], 1)"
  },
  "a semaphore": {
    section: (body) => Semaphore.withPermits(body, semaphore, 1),
    channel: `redisson_sc:{${name}}`,
    acquire: `if tonumber(redis.call('GET', KEYS[1]) or 0) < 1 then return 0 end redis.call('DECRBY', KEYS[1], 1) return 1`,
    release: "redis.call('PUBLISH', ARGV[1], redis.call('INCRBY', KEYS[1], 1))"
  }
}

for (const [title, { acquire, channel, release, section }] of Object.entries(kinds)) {
  for (const [delay, sections] of [
    [15, 5],
    [40, 2]
  ] as const) {
    testLive(
      `A client without places whose round trip takes ${2 * delay} ms is served while others contend for ${title}`,
      function* () {
        const server = yield* RedisServer.start()
        const redis = yield* bare(server)
        const proxy = yield* TcpProxy.make({ target: server })
        let served = 0
        for (const { run } of [yield* client(server), yield* client(server)]) {
          const fiber = run(Effect.forever(section(Effect.sleep(2))))
          yield* Effect.forkScoped(fiber)
          yield* Effect.forkScoped(fiber)
        }
        yield* eventually(
          "somebody is in",
          () => redis.exists(name),
          (count) => count === 1
        )
        yield* proxy.delay(delay)
        const [commands, messages] = [yield* bare(proxy), yield* bare(proxy)]
        const woken = yield* Queue.sliding<void>(1)
        messages.on("message", () => Queue.offerUnsafe(woken, undefined))
        yield* Effect.promise(() => messages.subscribe(channel))
        const tries = Effect.promise(async () => {
          if ((await commands.eval(acquire, 1, name)) !== 1) return
          served++
          await commands.eval(release, 1, name, channel)
        })
        yield* Effect.forkScoped(Queue.take(woken).pipe(Effect.andThen(Effect.uninterruptible(tries)), Effect.forever))
        yield* eventually(
          "it is served",
          () => Promise.resolve(served),
          (count) => count >= sections,
          "1 minute"
        )
        assert.isAtLeast(served, sections)
      }
    )
  }
}
