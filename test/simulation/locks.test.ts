/**
 * Whatever goes wrong between clients and servers, and whenever: see `world.ts`. A failure names the seed of its world and
 * tells what went before; `SEED=<seed> SEEDS=1` repeats it, and `SEEDS=1000` looks further.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, References } from "effect"
import {
  FairLock,
  Lock,
  MultiLock,
  PermitSemaphore,
  ReadWriteLock,
  RedLock,
  type RedisLock,
  Semaphore,
  SpinLock
} from "effect-redis-lock"
import { vi } from "vitest"
import { randomOf } from "./network.ts"
import { type Cast, Members, type Side, world } from "./world.ts"

const holder = (lock: Lock.Lock<RedisLock.RedisLock, any>, share: Side["share"] = "nobody"): Side => ({
  names: [lock.name],
  share,
  isReentrant: true,
  run: (section, options) => Effect.flatMap(Lock.holding(lock), section).pipe(Lock.withLock(lock, options))
})

/** All or nothing; each member has tokens of its own. */
const all = (lock: Lock.Lock<RedisLock.RedisLock, any, any>, names: ReadonlyArray<string>): Side => ({
  names,
  share: "nobody",
  isReentrant: true,
  run: (section, options) =>
    Effect.flatMap(Lock.holding(lock), (holding) => section({ renew: (leaseTime) => holding.renew(leaseTime) })).pipe(
      Lock.withLock(lock, options)
    )
})

const several = (...members: ReadonlyArray<string | Lock.Lock<RedisLock.RedisLock, any>>): Side => {
  const locks = members.map((member) => (typeof member === "string" ? Lock.make(member) : member))
  return all(
    MultiLock.make(locks),
    locks.map(({ name }) => name)
  )
}

const places = ["a", "b", "c"]

/** Each lock on a server of its own. */
const apart = (...names: ReadonlyArray<string>): Side => ({
  names,
  share: "nobody",
  isReentrant: true,
  run: (section, options) =>
    Effect.flatMap(Members, (members) => {
      const locks = names.map((name) => Lock.provide(Lock.make(name), members[places.indexOf(name)]!))
      return all(MultiLock.make(locks), names).run(section, options)
    })
})

/** One lock on all servers, which are asked impatiently. */
const red = (name: string): Side => ({
  names: [name],
  share: "nobody",
  isReentrant: true,
  run: (section, options) =>
    Effect.flatMap(Members, (members) => {
      const locks = members.map((member) => Lock.provide(Lock.make(name), member))
      return holder(RedLock.make(locks, { memberTimeout: 50, retry: 5 })).run(section, options)
    })
})

const permits = (permits: number): Side => ({
  names: ["permits"],
  share: { permits, of: 3 },
  isReentrant: false,
  run: (section, options) =>
    PermitSemaphore.withPermits(section({}), PermitSemaphore.make("permits", { permits: 3 }), permits, options)
})

const anonymous = (permits: number): Side => ({
  names: ["anonymous"],
  share: { permits, of: 3 },
  isReentrant: false,
  run: (section, { waitTime }) =>
    Semaphore.withPermits(section({}), Semaphore.make("anonymous", { permits: 3 }), permits, { waitTime })
})

const { readLock, writeLock } = ReadWriteLock.make("rw")

const kinds: Record<string, Cast & { readonly servers: ReadonlyArray<number> }> = {
  "plain locks and one that spins": { sides: [holder(Lock.make("a")), holder(SpinLock.make("b"))], servers: [1, 3, 5] },
  "readers and writers": { sides: [holder(writeLock), holder(readLock, "readers")], servers: [1, 3, 5] },
  "several locks at once": { sides: [several("a", "b"), several("c", "b"), holder(Lock.make("a"))], servers: [1, 3] },
  "several locks of different kinds": {
    sides: [
      several(FairLock.make("fair"), writeLock, SpinLock.make("spin")),
      holder(readLock, "readers"),
      holder(FairLock.make("fair"))
    ],
    servers: [1]
  },
  "several locks on different servers": { sides: [apart("a", "b", "c"), apart("c", "a"), apart("b")], servers: [3] },
  "impatient quorums": { sides: [red("a"), red("b")], servers: [3, 5] },
  "fair locks": { sides: [holder(FairLock.make("fair"))], servers: [1] },
  permits: { sides: [permits(1), permits(2), permits(3)], servers: [1] },
  "anonymous permits": { sides: [anonymous(1), anonymous(2), anonymous(3)], servers: [1], keepsData: true }
}

const first = Number(process.env["SEED"] ?? 1)
const seeds = Number(process.env["SEEDS"] ?? 10)

describe("a world of faults", () => {
  for (const [kind, { servers, ...cast }] of Object.entries(kinds)) {
    for (const count of servers) {
      it.effect(
        `lets in who may be in, and is free in the end: ${kind} on ${count === 1 ? "one server" : `${count} servers`}`,
        () =>
          Effect.gen(function* () {
            let entered = 0
            for (let seed = first; seed < first + seeds; seed++) {
              const random = vi.spyOn(Math, "random").mockImplementation(randomOf(seed))
              const report = yield* Effect.ensuring(
                world({ ...cast, seed, servers: count }),
                Effect.sync(() => random.mockRestore())
              )
              entered += report.entered
            }
            assert.isAbove(entered, 0)
          }).pipe(Effect.provideService(References.MinimumLogLevel, "None")),
        60_000 + seeds * 2000
      )
    }
  }
})
