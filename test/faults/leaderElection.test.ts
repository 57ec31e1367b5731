/**
 * Five processes of which one leads, while leaders are killed, stopped and told to resign, and Redis is restarted.
 * `ELECTION_ROUNDS=20 pnpm test faults/leaderElection` plays more rounds, and prints how long each kind of hand-over took.
 */
import { RedisServer } from "@effect-redis-lock/testing"
import { assert, it } from "@effect/vitest"
import { Effect, Option, Schema } from "effect"
import { LeaderElection } from "effect-redis-lock"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { client } from "../kit/clients.ts"
import { eventually } from "../kit/eventually.ts"
import { bare } from "../kit/server/bareRedis.ts"
import { start } from "./processes.ts"

const rounds = Number(process.env["ELECTION_ROUNDS"] ?? 1)
const leaseMillis = 1500

const election = LeaderElection.make("primary", { value: Schema.Number })

it.live("Of five processes one leads at a time, whatever becomes of the leaders and of Redis", () =>
  Effect.gen(function* () {
    const directory = yield* Effect.acquireRelease(
      Effect.promise(() => mkdtemp(join(tmpdir(), "election-"))),
      (directory) => Effect.promise(() => rm(directory, { recursive: true, force: true }))
    )
    // a restart keeps all data: one that loses it may have two leaders until the first one's next renewal
    const durable = ["--dir", directory, "--appendonly", "yes", "--appendfsync", "always"]
    const server = yield* RedisServer.start({ args: durable })
    const redis = yield* bare(server)
    const watcher = yield* client(server)
    const candidate = (number: number) =>
      start("candidate", { url: server.url, election: election.name, number, watchdogLeaseTime: leaseMillis })
    const processes = []
    for (let number = 0; number < 5; number++) processes.push(yield* candidate(number))
    for (const process of processes) yield* process.told("ready")

    const leader = watcher.run(Effect.option(LeaderElection.leader(election)))
    /** Waits for a leader of a later term. */
    const leaderAfter = (term: bigint) =>
      Effect.map(
        eventually(
          "somebody leads",
          Effect.map(leader, (seen) => {
            const found = Option.getOrUndefined(Option.flatten(seen))
            return { term: String(found?.term ?? 0), number: Option.getOrUndefined(found?.value ?? Option.none()) }
          }),
          (seen) => BigInt(seen.term) > term
        ),
        ({ number, term }) => ({ number: number!, term: BigInt(term) })
      )

    let pauses = 0
    const took: Record<string, Array<number>> = {}
    let now = yield* leaderAfter(0n)
    for (let round = 0; round < rounds; round++) {
      for (const fault of ["resign", "kill", "stop", "restart", "resign"] as const) {
        yield* eventually(
          "the leader works",
          () => redis.lrange(`${election.name}:log`, -1, -1).catch(() => []),
          ([last]) => last === String(now.term)
        )
        const before = performance.now()
        const process = processes[now.number]!
        if (fault === "resign") {
          yield* process.signal("SIGTERM")
        } else if (fault === "kill") {
          yield* process.signal("SIGKILL")
        } else if (fault === "stop") {
          pauses++
          yield* process.signal("SIGSTOP")
        } else {
          // with all that it knows: the leader goes on, or somebody else does
          yield* server.restart
          now = yield* leaderAfter(now.term - 1n)
          continue
        }
        const next = yield* leaderAfter(now.term)
        ;(took[fault] ??= []).push(performance.now() - before)
        if (fault === "kill") processes[now.number] = yield* candidate(now.number)
        if (fault === "stop") yield* process.signal("SIGCONT")
        now = next
      }
    }

    // each wrote down its term only after it had found that it leads: in the order of the server they rise
    yield* Effect.sleep(200)
    const terms = yield* Effect.promise(() => redis.lrange(`${election.name}:log`, 0, -1))
    let highest = 0n
    let late = 0
    for (const term of terms.map(BigInt)) {
      if (term < highest) late++
      else highest = term
    }
    // a process can be stopped between its check and its write: once for each pause
    assert.isAtMost(late, pauses)
    assert.isAtLeast(new Set(terms).size, 1 + 3 * rounds)
    if (rounds > 1) {
      for (const [fault, millis] of Object.entries(took)) {
        const sorted = millis.map(Math.round).sort((a, b) => a - b)
        globalThis.process.stdout.write(
          `${fault}: median ${sorted[sorted.length >> 1]} ms, longest ${sorted.at(-1)} ms\n`
        )
      }
    }
  }).pipe(Effect.scoped)
)
