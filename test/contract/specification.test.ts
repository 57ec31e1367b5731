/**
 * Runs of the specifications (spec/lock.qnt, spec/readWrite.qnt), repeated on the real scripts: the same commands at the same times lead to
 * the same holders, leases, tokens and messages after every step. The order of the places shows in the owners that a release tells.
 */
import { assert, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { LockStore } from "effect-redis-lock"
import { readFileSync } from "node:fs"
import { clientId, lifeOfKeyIn, listenTo, runOperation } from "../kit/storeOperations.ts"
import type { Store } from "../kit/wrappedStore.ts"

/** See spec/traces.mjs. Times and tokens are microseconds since the run began; an owner's last digit is its process, 0 is nobody. */
interface Step<Server> {
  readonly clock: number
  readonly did: {
    readonly op: "acquire" | "release" | "renew"
    readonly owner: number
    readonly wants: string
    readonly hasAsked: boolean
    readonly waited: number
    readonly reply: "granted" | "denied" | "released" | "not held" | "extended"
    /** The owners to which the lock was handed over. */
    readonly told: ReadonlyArray<number>
  }
  readonly server: Server
}
interface LockServer {
  readonly holder: number
  readonly until: number
  readonly lastToken: number
}
interface ReadWriteServer {
  readonly writer: number
  /** Each with the time at which its hold ends. */
  readonly readers: ReadonlyArray<readonly [owner: number, until: number]>
  readonly until: number
  readonly lastToken: number
}

const runs: {
  readonly lock: ReadonlyArray<ReadonlyArray<Step<LockServer>>>
  readonly readWrite: ReadonlyArray<ReadonlyArray<Step<ReadWriteServer>>>
} = JSON.parse(readFileSync(new URL("../../spec/traces.json", import.meta.url), "utf8"))

const startMillis = Date.UTC(2026, 0)
const micros = (since: number) => startMillis * 1000 + since
const [name, token, places] = ["ledger", "redisson_lock_token:{ledger}", "effect_redis_lock_places:{ledger}"]
const readers = "effect_redis_lock_readers:{ledger}"
const clientOf = (process: number) => clientId(String(process))
const ownerOf = (owner: number) => `${clientOf(owner % 10)}:${owner}`
const holdsStem = "{ledger}"
const holdOf = (owner: number) => `${holdsStem}:${ownerOf(owner)}:rwlock_timeout:1`
/** Redis counts leases in whole milliseconds. */
const left = (until: number, clock: number) => Math.floor(until / 1000) - Math.floor(clock / 1000)

/** A store at the time of the runs, and the messages that each process hears. */
const listening = (channel: string) =>
  Effect.gen(function* () {
    yield* TestClock.setTime(startMillis)
    const store = Context.get(yield* Layer.build(Layer.fresh(LockStore.layerMemory)), LockStore.LockStore)
    const listeners = yield* Effect.forEach([1, 2, 3, 4], (process) =>
      listenTo(store, `${channel}:${clientOf(process)}`)
    )
    const messages = () => listeners.flatMap(({ heard }) => heard.splice(0))
    return { store, messages }
  })

/** Runs the command of a step at its time, and lets messages be read; the reply in the words of the specification. */
const replyTo = <Server>({ clock, did }: Step<Server>, command: ReturnType<typeof runOperation>) =>
  Effect.gen(function* () {
    yield* TestClock.setTime(startMillis + (clock + 0.5) / 1000)
    const reply = yield* command
    for (let turn = 0; turn < 10; turn++) yield* Effect.yieldNow
    if (did.op === "acquire") return typeof reply === "number" ? "granted" : "denied"
    if (did.op === "release") return Number(reply) >= 1 ? "released" : "not held"
    return Number(reply) === 1 ? "extended" : "not held"
  })

const inspect = (store: Store) =>
  Effect.map(runOperation(store, "lock/inspect", [name, token]), (reply) => {
    const [left, lastToken, fields] = reply as readonly [number, unknown, ReadonlyArray<string>]
    return { left, lastToken: lastToken === null ? undefined : Number(lastToken), fields }
  })

for (const [seq, steps] of runs.lock.entries()) {
  it.effect(`the scripts of a lock do what run ${seq + 1} of the specification says`, () =>
    Effect.gen(function* () {
      const channel = "redisson_lock__channel:{ledger}"
      const { messages, store } = yield* listening(channel)
      for (const [at, step] of steps.entries()) {
        const { clock, did, server } = step
        const owner = ownerOf(did.owner)
        const acquire = [owner, 8000, 86_400_000, "", did.hasAsked ? 1 : 0]
        const release = [owner, store.publish, 2000, 86_400_000]
        const commands = {
          acquire: runOperation(store, "lock/acquire", [name, token, places], acquire),
          release: runOperation(store, "lock/release", [name, channel, places, token], release),
          renew: runOperation(store, "lock/renew", [name], [8000, owner])
        }
        const reply = yield* replyTo(step, commands[did.op])
        const found = yield* inspect(store)
        const isHeld = server.holder !== 0
        assert.deepStrictEqual(
          {
            reply,
            holder: found.fields[0],
            left: isHeld ? found.left : undefined,
            lastToken: found.lastToken,
            messages: messages()
          },
          {
            reply: did.reply,
            holder: isHeld ? ownerOf(server.holder) : undefined,
            left: isHeld ? left(server.until, clock) : undefined,
            lastToken: server.lastToken === -1 ? undefined : micros(server.lastToken),
            messages: did.told.map((told) => `0 ${told} ${micros(server.lastToken)} ${micros(clock)} 2000`)
          },
          `step ${at + 1}: ${JSON.stringify(did)}`
        )
      }
    })
  )
}

for (const [seq, steps] of runs.readWrite.entries()) {
  it.effect(`the scripts of a read-write lock do what run ${seq + 1} of the specification says`, () =>
    Effect.gen(function* () {
      const channel = "redisson_rwlock:{ledger}"
      const { messages, store } = yield* listening(channel)
      for (const [at, step] of steps.entries()) {
        const { clock, did, server } = step
        const [owner, hold] = [ownerOf(did.owner), holdOf(did.owner)]
        const asked = did.hasAsked ? 1 : 0
        const terms = [store.publish, 2000, 86_400_000]
        const all = [name, channel, holdsStem, readers, places, token]
        const read = {
          acquire: runOperation(
            store,
            "read_lock/acquire",
            [name, token, hold, readers, places],
            [owner, 8000, "", 0, did.waited, asked]
          ),
          release: runOperation(store, "read_lock/release", all, [owner, ...terms]),
          renew: runOperation(store, "read_lock/renew", [name, readers, hold], [8000, owner, 1])
        }
        const write = {
          acquire: runOperation(
            store,
            "write_lock/acquire",
            [name, token, readers, places],
            [owner, 8000, 86_400_000, "", owner, asked]
          ),
          release: runOperation(store, "write_lock/release", all, [owner, ...terms, owner]),
          renew: runOperation(store, "lock/renew", [name], [8000, `${owner}:write`])
        }
        const reply = yield* replyTo(step, (did.wants === "read" ? read : write)[did.op])
        const found = yield* inspect(store)
        const isFree = server.writer === 0 && server.readers.length === 0
        const ends: Array<number> = []
        for (const [reader] of server.readers) ends.push(yield* lifeOfKeyIn(store, holdOf(reader)))
        const holders =
          server.writer === 0 ? server.readers.map(([reader]) => ownerOf(reader)) : [`${ownerOf(server.writer)}:write`]
        const lastToken = server.lastToken === -1 ? undefined : micros(server.lastToken)
        assert.deepStrictEqual(
          {
            reply,
            holders: found.fields.filter((field) => field.length > 36).sort(),
            left: isFree ? undefined : found.left,
            ends,
            lastToken: found.lastToken,
            messages: messages().sort()
          },
          {
            reply: did.reply,
            holders: holders.sort(),
            left: isFree ? undefined : left(server.until, clock),
            ends: server.readers.map(([, until]) => (until > clock ? left(until, clock) : -2)),
            lastToken,
            messages: did.told
              // 1 and 2 read, the others write
              .map((told) => `${told % 10 > 2 ? 1 : 0} ${told} ${lastToken ?? micros(clock - 1)} ${micros(clock)} 2000`)
              .sort()
          },
          `step ${at + 1}: ${JSON.stringify(did)}`
        )
      }
    })
  )
}
