/**
 * The table of docs/failover.md: which grant is still there when a replica has taken over.
 */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { Lock } from "effect-redis-lock"
import { readFileSync } from "node:fs"
import { client } from "../kit/clients.ts"
import { eventually, until } from "../kit/eventually.ts"
import { storeError } from "../kit/exits.ts"
import { replicasOnline, replicated } from "../kit/server/replicated.ts"
import { testLive } from "../kit/test.ts"

type Site = Effect.Success<ReturnType<typeof replicated>>
type Replica = Site["replicas"][number]

/** What the replicas were like when the lock was asked for, and which of them takes over; by the row of the table. */
const failures = {
  "no replica has received the grant yet": { lagging: [0, 1], gone: [], promoted: 0 },
  "one replica has not received it, and the other one is promoted": { lagging: [1], gone: [], promoted: 0 },
  "one replica has not received it, and is promoted": { lagging: [1], gone: [], promoted: 1 },
  "the master has given a replica up, which is promoted later": { lagging: [], gone: [1], promoted: 1 }
} as const

const settings = {
  nothing: "none",
  "`replicas: 1`": { replicas: 1, within: "200 millis" },
  '`"majority"`': { replicas: "majority", within: "200 millis" },
  '`"all"`': { replicas: "all", within: "200 millis" }
} as const

const page = readFileSync(new URL("../../docs/failover.md", import.meta.url), "utf8")

/** What the page says: by failure and setting. */
const table = (() => {
  const rows = page.split("\n").filter((line) => line.startsWith("| "))
  const header = rows.findIndex((line) => line.includes("what happens to the grant"))
  const cells = (line: string) => line.split("|").map((cell) => cell.trim())
  const columns = cells(rows[header]!)
  return (failure: string, setting: string): string => {
    const row = rows.slice(header + 1).find((line) => cells(line)[1] === failure)
    return row === undefined ? "no such row" : (cells(row)[columns.indexOf(setting)] ?? "no such column")
  }
})()

const isKnown = ({ redis }: Replica, lock: string) => Effect.promise(async () => (await redis.exists(lock)) === 1)

testLive("A grant survives the failovers that docs/failover.md says it survives, and no others", function* () {
  const { master, replicas } = yield* replicated(2)
  const { run } = yield* client(master.server, { watchdogLeaseTime: "10 minutes" })
  // connects, and learns of the replicas
  for (const acknowledge of Object.values(settings)) {
    yield* eventually(
      "the master's replicas acknowledge",
      Effect.result(run(Lock.withLock(Effect.void, "first", { acknowledge }))),
      ({ _tag }) => _tag === "Success"
    )
  }
  let count = 0
  for (const [failure, { gone, lagging, promoted }] of Object.entries(failures)) {
    for (const [setting, acknowledge] of Object.entries(settings)) {
      const lock = `lock ${++count}`
      for (const i of gone) yield* replicas[i]!.link.cut
      if (gone.length > 0) yield* replicasOnline(master.redis, 2 - gone.length)
      for (const i of lagging) yield* replicas[i]!.link.stall
      const outcome = yield* run(
        Effect.gen(function* () {
          const asked = yield* eventually(
            "it is refused as the page says, or granted: on a busy machine not by the first request",
            Effect.exit(Lock.scoped(lock, { acknowledge })),
            (asked) => asked._tag === "Success" || table(failure, setting) === "refused"
          )
          if (asked._tag === "Failure") {
            assert.strictEqual(storeError(asked).reason, "NotReplicated")
            return "refused"
          }
          const successor = replicas[promoted]!
          const isExpected = table(failure, setting).startsWith("survives")
          // without acknowledgement it may get there all the same, a little later
          if (acknowledge === "none" && isExpected) {
            yield* until("the replica has received it", isKnown(successor, lock))
          }
          // what the master has sent does not arrive any more
          for (const { link } of replicas) yield* link.cut
          yield* Effect.promise(() => successor.redis.call("REPLICAOF", "NO", "ONE"))
          return (yield* isKnown(successor, lock)) ? "survives" : "lost"
        }).pipe(Effect.scoped)
      )
      assert.isTrue(
        table(failure, setting).startsWith(outcome),
        `${failure}, with ${setting}: ${outcome}; the page says: ${table(failure, setting)}`
      )
      for (const { link, redis } of replicas) {
        yield* link.cut
        yield* link.restore
        yield* link.resume
        yield* Effect.promise(() => redis.call("REPLICAOF", link.host, link.port))
      }
      yield* replicasOnline(master.redis, 2)
    }
  }
})
