/**
 * Runs of the specifications (spec/*.qnt), repeated on the real scripts: the same commands at the same times lead to the same holders,
 * leases, tokens and messages after every step. The order of the places of a lock shows in the owners that a release tells.
 */
import { storeOf } from "../kit/testStore.ts"
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { LockStore } from "effect-redis-lock"
import { readFileSync } from "node:fs"
import { clientId, lifeOfKeyIn, listenTo, runOperation } from "../kit/storeOperations.ts"
import type { Store } from "../kit/wrappedStore.ts"
import { test } from "../kit/test.ts"

/** See spec/traces.mjs. Times and tokens are microseconds since the run began; an owner's last digit is its process, 0 is nobody. */
interface Step<Server, Op = "acquire" | "release" | "renew"> {
  readonly clock: number
  readonly did: {
    readonly op: Op
    readonly owner: number
    readonly wants: string
    readonly hasAsked: boolean
    readonly waited: number
    readonly age: number
    readonly reply: "granted" | "denied" | "released" | "not held" | "extended" | "left" | "no place" | "turn" | "wait"
    /** The owners to which the lock was handed over, or that were told that permits are free. */
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
interface PermitServer {
  readonly free: number
  readonly held: ReadonlyArray<readonly [owner: number, grant: { readonly until: number; readonly permits: number }]>
  /** The latest request of each client that has a place. */
  readonly places: ReadonlyArray<number>
}
interface FairServer extends LockServer {
  readonly queue: ReadonlyArray<number>
}

const runs: {
  readonly lock: ReadonlyArray<ReadonlyArray<Step<LockServer>>>
  readonly readWrite: ReadonlyArray<ReadonlyArray<Step<ReadWriteServer>>>
  readonly permits: ReadonlyArray<ReadonlyArray<Step<PermitServer, "acquire" | "release" | "renew" | "leave">>>
  readonly fairQueue: ReadonlyArray<ReadonlyArray<Step<FairServer, "acquire" | "release" | "renew" | "refresh">>>
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

/** A store at the time of the runs, and the messages that each process, or each owner, hears. */
const listening = (channel: string, hearers = [1, 2, 3, 4].map(clientOf)) =>
  Effect.gen(function* () {
    yield* TestClock.setTime(startMillis)
    const store = yield* storeOf(LockStore.layerMemory)
    const listeners = yield* Effect.forEach(hearers, (hearer) => listenTo(store, `${channel}:${hearer}`))
    const messages = () => listeners.flatMap(({ heard }) => heard.splice(0))
    /** Which of them have heard something, as often as they have. */
    const told = () => listeners.flatMap(({ heard }, at) => heard.splice(0).map(() => hearers[at]!))
    return { store, messages, told }
  })

/** Runs the command of a step at its time, and lets messages be read; the reply in the words of the specification. */
const replyTo = <Server, Op>({ clock, did }: Step<Server, Op>, command: ReturnType<typeof runOperation>) =>
  Effect.gen(function* () {
    yield* TestClock.setTime(startMillis + (clock + 0.5) / 1000)
    const reply = yield* command
    for (let turn = 0; turn < 10; turn++) yield* Effect.yieldNow
    if (typeof reply === "string") return reply
    if (did.op === "acquire") return typeof reply === "number" ? "granted" : "denied"
    if (did.op === "release") return Number(reply) >= 1 ? "released" : "not held"
    if (did.op === "leave") return Number(reply) === 1 ? "left" : "no place"
    return Number(reply) === 1 ? "extended" : "not held"
  })

const inspect = (store: Store) =>
  Effect.map(runOperation(store, "lock/inspect", [name, token]), (reply) => {
    const [left, lastToken, fields] = reply as readonly [number, unknown, ReadonlyArray<string>]
    return { left, lastToken: lastToken === null ? undefined : Number(lastToken), fields }
  })

for (const [seq, steps] of runs.lock.entries()) {
  test(`the scripts of a lock do what run ${seq + 1} of the specification says`, function* () {
    const channel = "redisson_lock__channel:{ledger}"
    const { messages, store } = yield* listening(channel)
    for (const [at, step] of steps.entries()) {
      const { clock, did, server } = step
      const owner = ownerOf(did.owner)
      const acquire = [owner, 8000, 86_400_000, "", did.hasAsked ? 1 : 0, did.age]
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
}

for (const [seq, steps] of runs.readWrite.entries()) {
  test(`the scripts of a read-write lock do what run ${seq + 1} of the specification says`, function* () {
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
          [owner, 8000, "", 0, did.waited, asked, did.age]
        ),
        release: runOperation(store, "read_lock/release", all, [owner, ...terms]),
        renew: runOperation(store, "read_lock/renew", [name, readers, hold], [8000, owner])
      }
      const write = {
        acquire: runOperation(
          store,
          "write_lock/acquire",
          [name, token, readers, places],
          [owner, 8000, 86_400_000, "", owner, asked, did.age]
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
}

/** What Redis has under the name, as `lua/lock/look.lua` tells it. */
const look = (store: Store, keys: ReadonlyArray<string>) =>
  Effect.map(runOperation(store, "lock/look", [name, ...keys], [100]), (reply) => {
    const [, left, lastToken, fields, counter, queue, , , permits, , placed] = reply as ReadonlyArray<any>
    return {
      left: left as number,
      lastToken: lastToken === null || lastToken === false ? undefined : Number(lastToken),
      holder: (fields as ReadonlyArray<string>)[0],
      counter: Number(counter),
      queue: queue as ReadonlyArray<string>,
      permits: permits as ReadonlyArray<string | number>,
      placed: (placed as ReadonlyArray<string>).filter((_, at) => at % 2 === 0)
    }
  })

for (const [seq, steps] of runs.permits.entries()) {
  test(`the scripts of permits do what run ${seq + 1} of the specification says`, function* () {
    const channel = "redisson_sc:{ledger}"
    const { store, told } = yield* listening(channel)
    const [ids, placed, wants] = ["{ledger}:timeout", "places:{ledger}", "wants:{ledger}"]
    const semaphore = [name, ids, channel, placed, wants]
    const idsOf = (owner: number, permits: number) =>
      Array.from({ length: permits }, (_, at) => `${owner}${at}`.padStart(32, "0"))
    for (const [at, step] of steps.entries()) {
      const { clock, did, server } = step
      const wanted = did.wants === "all" ? 2 : 1
      const mine = idsOf(did.owner, wanted)
      const client = clientOf(did.owner % 10)
      const asking = [client, wanted, did.waited / 1000, 0, 0, did.hasAsked ? 0 : 1]
      const commands = {
        acquire: Effect.map(
          runOperation(store, "permit_semaphore/acquire", semaphore, [2, 8000, store.publish, ...asking, ...mine]),
          (reply) => ((reply as ReadonlyArray<number>)[0] === 1 ? "granted" : "denied")
        ),
        release: runOperation(store, "permit_semaphore/release", semaphore, [store.publish, ...mine]),
        renew: runOperation(store, "permit_semaphore/renew", [ids], [8000, mine.join(",")]),
        leave: runOperation(store, "semaphore/leave", [name, channel, placed, wants], [client, store.publish])
      }
      const reply = yield* replyTo(step, commands[did.op])
      const found = yield* look(store, ["none:{ledger}", "none:{ledger}", "none:{ledger}", ids, placed])
      const millis = Math.floor(clock / 1000)
      const held = server.held.filter(([, { until }]) => until > millis * 1000)
      assert.deepStrictEqual(
        {
          reply,
          free: found.counter,
          held: Object.fromEntries(
            found.permits.flatMap((id, at) => (at % 2 === 0 ? [[id, found.permits[at + 1]]] : []))
          ),
          placed: found.placed,
          told: told().sort()
        },
        {
          reply: did.reply,
          free: server.free,
          held: Object.fromEntries(
            held.flatMap(([owner, { permits, until }]) =>
              idsOf(owner, permits).map((id) => [id, left(until, clock)] as const)
            )
          ),
          placed: server.places.map((owner) => clientOf(owner % 10)),
          told: did.told.map((owner) => clientOf(owner % 10)).sort()
        },
        `step ${at + 1}: ${JSON.stringify(did)}`
      )
    }
  })
}

for (const [seq, steps] of runs.fairQueue.entries()) {
  test(`the scripts of a fair lock do what run ${seq + 1} of the specification says`, function* () {
    const channel = "redisson_fairlock:{ledger}"
    const owners = [...new Set(steps.map(({ did }) => ownerOf(did.owner)))]
    const { messages, store } = yield* listening(channel, owners)
    const [queue, timeouts, alive] = ["queue:{ledger}", "timeouts:{ledger}", "alive:{ledger}"]
    for (const [at, step] of steps.entries()) {
      const { clock, did, server } = step
      const owner = ownerOf(did.owner)
      const client = clientOf(did.owner % 10)
      const ours = [queue, timeouts, alive]
      const place = [300_000, client, 1500]
      const commands = {
        acquire: runOperation(
          store,
          "fair_lock/acquire",
          [name, token, ...ours, channel],
          [owner, 8000, 86_400_000, ...place, store.publish, did.owner]
        ),
        release: runOperation(
          store,
          "fair_lock/release",
          [name, channel, ...ours, token],
          [owner, store.publish, 1500, 86_400_000, 300_000]
        ),
        renew: runOperation(store, "lock/renew", [name], [8000, owner]),
        refresh: Effect.map(
          runOperation(store, "fair_lock/refresh", [name, channel, ...ours], [store.publish, ...place, 1, 1, owner]),
          (reply) => {
            const [left, head, , holder] = reply as ReadonlyArray<unknown>
            return holder === owner || (left === -2 && head === owner) ? "turn" : "wait"
          }
        )
      }
      const reply = yield* replyTo(step, commands[did.op])
      const found = yield* look(store, [token, queue, "none:{ledger}", "none:{ledger}", "none:{ledger}"])
      const isHeld = server.holder !== 0 && server.until > clock
      assert.deepStrictEqual(
        {
          reply,
          holder: found.holder,
          left: isHeld ? found.left : undefined,
          lastToken: found.lastToken,
          queue: found.queue,
          // any other says no more than to ask
          messages: messages().filter((message) => message.includes(" "))
        },
        {
          reply: did.reply,
          holder: isHeld ? ownerOf(server.holder) : undefined,
          left: isHeld ? left(server.until, clock) : undefined,
          lastToken: server.lastToken === -1 ? undefined : micros(server.lastToken),
          queue: server.queue.map(ownerOf),
          // the secret of an owner
          messages: did.told.map((told) => `0 ${-told} ${micros(server.lastToken)} ${micros(clock)} 1500`)
        },
        `step ${at + 1}: ${JSON.stringify(did)}`
      )
    }
  })
}
