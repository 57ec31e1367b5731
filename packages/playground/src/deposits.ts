/**
 * The two programs that are compared: each makes one deposit after another, under a lock.
 */
import { Data, Effect, Schedule } from "effect"
import { Lock, type RedisDriver } from "effect-redis-lock"
import type { LedgerReply } from "./Ledger.ts"

/** The ledger refuses a token that is lower than one that it has seen. */
export class StaleToken extends Data.TaggedError("StaleToken") {}

/** What a process knows of its ledger. */
export interface Account {
  readonly read: (token?: bigint) => Effect.Effect<LedgerReply>
  readonly write: (balance: number, token?: bigint) => Effect.Effect<LedgerReply>
  /** Takes its time, as a call of a bank does. */
  readonly askBank: Effect.Effect<void>
  /** Is told when a section begins, and when it ends in whatever way. */
  readonly inside: <A, E, R>(section: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

/** The lease of both locks. One is renewed while its holder works; the other is what somebody once thought would do. */
export const leaseMillis = 3000

export const name = "ledger"

const deposit = (account: Account, token?: bigint) =>
  Effect.gen(function* () {
    const read = yield* account.read(token)
    if (read._tag === "StaleToken") return yield* new StaleToken()
    yield* account.askBank
    const written = yield* account.write(read.balance + 1, token)
    if (written._tag === "StaleToken") return yield* new StaleToken()
  })

/** With the library. */
export const withLibrary = (account: Account) =>
  Effect.gen(function* () {
    const { token } = yield* Lock.currentHolding(name)
    yield* account.inside(deposit(account, token))
  }).pipe(Lock.withLock(name))

const script = (name: string, lua: string): RedisDriver.RedisScript => ({ name, sha1: name, lua })

// SET ledger value NX PX 3000, by the commands that the memory store knows
const setNx = script(
  "set-nx",
  `if redis.call("EXISTS", KEYS[1]) == 1 then return 0 end
redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[2])
return 1`
)

const deleteOwn = script(
  "delete-own",
  `if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end
return 0`
)

const again = Schedule.spaced("200 millis")

/** With SET NX and a fixed lease, as it is often written: it asks again every 200 ms, and deletes only what is its own. */
export const withSetNx = (account: Account, { eval: run }: RedisDriver.RedisDriver["Service"], value: string) =>
  Effect.acquireUseRelease(
    run(setNx, [name], [value, leaseMillis]).pipe(
      Effect.filterOrFail((reply) => reply === 1),
      Effect.retry(again)
    ),
    () => account.inside(deposit(account)),
    () => Effect.ignore(run(deleteOwn, [name], [value]))
  )
