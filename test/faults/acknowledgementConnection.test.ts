import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { Lock } from "effect-redis-lock"
import { client } from "../kit/clients.ts"
import { recording } from "../kit/connectionLog.ts"
import { eventually } from "../kit/eventually.ts"
import { replicated } from "../kit/server/replicated.ts"

const waitsOf = (clients: string) => /id=(\d+) .* cmd=wait /.exec(clients)?.[1]

it.live(
  "A connection on which grants wait is replaced when it breaks, and the log does not say that it is gone for good",
  () =>
    Effect.gen(function* () {
      const { master } = yield* replicated(1)
      const record = recording()
      yield* Effect.gen(function* () {
        const { run } = yield* client(master.server, { acknowledge: { replicas: 1, within: "2 minutes" } })
        yield* run(Lock.withLock(Effect.void, "a"))
        const clients = () => master.redis.client("LIST") as Promise<string>
        const id = waitsOf(yield* Effect.promise(clients))!
        yield* Effect.promise(() => master.redis.client("KILL", "ID", id))
        yield* eventually("it is gone", clients, (list) => waitsOf(list) === undefined)
        yield* run(Lock.withLock(Effect.void, "b"))
        assert.isDefined(waitsOf(yield* Effect.promise(clients)))
      }).pipe(Effect.provide(record.layer), Effect.scoped)
      assert.deepStrictEqual(record.logged(), [])
    }).pipe(Effect.scoped)
)
