/**
 * Runs of the specification (spec/lock.qnt), repeated on the real scripts: the same commands at the same times lead to the same holder,
 * lease, token and messages after every step. The order of the places shows in the owner that a release tells.
 */
import { assert, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { LockStore } from "effect-redis-lock"
import { readFileSync } from "node:fs"
import { clientId, listenTo, runOperation } from "../kit/storeOperations.ts"

/** See spec/traces.mjs. Times and tokens are microseconds since the run began; an owner's last digit is its process, 0 is nobody. */
interface Step {
  readonly clock: number
  readonly did: {
    readonly op: "acquire" | "release" | "renew"
    readonly owner: number
    readonly hasAsked: boolean
    readonly reply: "granted" | "denied" | "released" | "not held" | "extended"
    /** The owner to which the lock was handed over. */
    readonly told: number
  }
  readonly server: {
    readonly holder: number
    readonly until: number
    readonly places: ReadonlyArray<number>
    readonly lastToken: number
  }
}

const runs: ReadonlyArray<ReadonlyArray<Step>> = JSON.parse(
  readFileSync(new URL("../../spec/traces.json", import.meta.url), "utf8")
)

const startMillis = Date.UTC(2026, 0)
const [name, token, places] = ["ledger", "redisson_lock_token:{ledger}", "effect_redis_lock_places:{ledger}"]
const channel = "redisson_lock__channel:{ledger}"
const clientOf = (process: number) => clientId(String(process))
const ownerOf = (owner: number) => `${clientOf(owner % 10)}:${owner}`

for (const [seq, steps] of runs.entries()) {
  it.effect(`the scripts do what run ${seq + 1} of the specification says`, () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(startMillis)
      const store = Context.get(yield* Layer.build(Layer.fresh(LockStore.layerMemory)), LockStore.LockStore)
      const listeners = yield* Effect.forEach([1, 2, 3], (process) =>
        listenTo(store, `${channel}:${clientOf(process)}`)
      )
      const micros = (since: number) => startMillis * 1000 + since

      for (const [at, { clock, did, server }] of steps.entries()) {
        yield* TestClock.setTime(startMillis + clock / 1000)
        const owner = ownerOf(did.owner)
        const commands = {
          acquire: runOperation(
            store,
            "lock/acquire",
            [name, token, places],
            [owner, 8000, 86_400_000, "", did.hasAsked ? 1 : 0]
          ),
          release: runOperation(
            store,
            "lock/release",
            [name, channel, places, token],
            [owner, store.publish, 2000, 86_400_000]
          ),
          renew: runOperation(store, "lock/renew", [name], [8000, owner])
        }
        const reply = yield* commands[did.op]
        const replies = {
          acquire: typeof reply === "number" ? "granted" : "denied",
          release: Number(reply) >= 1 ? "released" : "not held",
          renew: Number(reply) === 1 ? "extended" : "not held"
        }
        // let a message be read
        for (let turn = 0; turn < 10; turn++) yield* Effect.yieldNow
        const [left, lastToken, fields] = (yield* runOperation(store, "lock/inspect", [name, token])) as readonly [
          number,
          unknown,
          ReadonlyArray<string>
        ]
        const isHeld = server.holder !== 0
        assert.deepStrictEqual(
          {
            reply: replies[did.op],
            holder: fields[0],
            left: isHeld ? left : undefined,
            lastToken: lastToken === null ? undefined : Number(lastToken),
            messages: listeners.flatMap(({ heard }) => heard.splice(0))
          },
          {
            reply: did.reply,
            holder: isHeld ? ownerOf(server.holder) : undefined,
            left: isHeld ? (server.until - clock) / 1000 : undefined,
            lastToken: server.lastToken === -1 ? undefined : micros(server.lastToken),
            messages: did.told === 0 ? [] : [`0 ${did.told} ${micros(server.lastToken)} ${micros(clock)} 2000`]
          },
          `step ${at + 1}: ${JSON.stringify(did)}`
        )
      }
    })
  )
}
