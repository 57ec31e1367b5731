/**
 * A real server whose clock is set while clients use it.
 */
import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import {
  FairLock,
  FencedLock,
  Lock,
  type LockReentered,
  PermitSemaphore,
  ReadWriteLock,
  RedisLock
} from "effect-redis-lock"
import { type Client, clientOf, locks } from "../kit/clients.ts"
import { commandsRun } from "../kit/server/commandsOf.ts"
import { impossible, skewedServers } from "./skewedServers.ts"
import { testLiveQuietly } from "../kit/test.ts"

if (impossible !== undefined) console.log(`The tests of a server's clock that is set are skipped: ${impossible}`)

const { readLock, writeLock } = ReadWriteLock.make("rw")

const token = ({ run }: Client, lock: Lock.Lock<RedisLock.RedisLock, LockReentered>) =>
  run(Effect.map(Lock.currentHolding(lock), ({ token }) => token).pipe(Lock.withLock(lock, { waitTime: 0 })))

const steps = [3600, 0, -3600, 10, -10, 0]

describe.skipIf(impossible !== undefined)("a server whose clock is set", () => {
  testLiveQuietly(
    "A server whose clock is set grants locks of every kind without waiting, with rising tokens",
    function* () {
      const [place] = yield* skewedServers([0])
      const { server, setClock } = place!
      const clients = [yield* clientOf(locks(server)), yield* clientOf(locks(server))]
      const kinds = {
        plain: Lock.make("plain"),
        fair: FairLock.make("fair"),
        fenced: FencedLock.make("fenced"),
        writeLock
      }
      const last = new Map<string, bigint>()
      for (const seconds of [0, ...steps]) {
        yield* setClock(seconds)
        for (const client of clients) {
          for (const [name, lock] of Object.entries(kinds)) {
            const next = yield* token(client, lock)
            assert.isTrue(
              next > (last.get(name) ?? 0n),
              `${name}: ${next} after ${last.get(name)}, clock at ${seconds} s`
            )
            last.set(name, next)
          }
          yield* token(client, readLock)
          yield* client.run(
            PermitSemaphore.withPermit(Effect.void, PermitSemaphore.make("permits", { permits: 1 }), { waitTime: 0 })
          )
        }
      }
    }
  )

  testLiveQuietly(
    "A clock set forwards costs each client one refused command, and one set back costs none",
    function* () {
      const [place] = yield* skewedServers([0])
      const { redis, server, setClock } = place!
      const client = yield* clientOf(locks(server, { label: "" }))
      const scriptsOf = (self: Effect.Effect<unknown, unknown>) =>
        Effect.gen(function* () {
          const before = yield* commandsRun(redis, "evalsha")
          yield* self
          return (yield* commandsRun(redis, "evalsha")) - before
        })
      yield* token(client, Lock.make("plain"))
      yield* token(client, Lock.make("plain"))
      // an acquisition and a release
      assert.strictEqual(yield* scriptsOf(token(client, Lock.make("plain"))), 2)
      yield* setClock(3600)
      assert.strictEqual(yield* scriptsOf(token(client, Lock.make("plain"))), 3)
      assert.strictEqual(yield* scriptsOf(token(client, Lock.make("plain"))), 2)
      yield* setClock(0)
      assert.strictEqual(yield* scriptsOf(token(client, Lock.make("plain"))), 2)
    }
  )
})
