/**
 * Five processes that campaign, a Redis that keeps its data over restarts, and what can be done to them.
 */
import { RedisServer } from "@effect-redis-lock/testing"
import { Effect, Option, Schema } from "effect"
import { LeaderElection } from "effect-redis-lock"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type Process, start } from "../faults/processes.ts"
import type { CandidateEvent } from "../faults/fixtures/candidate.ts"
import { client } from "../kit/clients.ts"
import { eventually } from "../kit/eventually.ts"
import { bare } from "../kit/server/bareRedis.ts"
import { type Check, rivals } from "./judge.ts"

export const candidateCount = 5

/** Milliseconds, of all leaders. */
export const leaseMillis = 1500

/** Who leads, and since when by the server's time, microseconds. */
export interface Term {
  readonly number: number
  readonly term: bigint
}

export interface ElectionOptions {
  /** Whether the server will be restarted. Default: true. */
  readonly isRestarted?: boolean
  /** Leaders resign by themselves when they have led for so long, milliseconds. Default: never. */
  readonly resignsAfter?: number
}

export const openElection = Effect.fnUntraced(function* ({ isRestarted = true, ...settings }: ElectionOptions = {}) {
  const directory = yield* Effect.acquireRelease(
    Effect.promise(() => mkdtemp(join(tmpdir(), "election-"))),
    (directory) => Effect.promise(() => rm(directory, { recursive: true, force: true }))
  )
  // a restart keeps all data: one that loses it may have two leaders until the first one's next renewal
  const durable = ["--dir", directory, "--appendonly", "yes", "--appendfsync", "always"]
  const server = yield* RedisServer.start({ args: isRestarted ? durable : [] })
  const redis = yield* bare(server)
  const watcher = yield* client(server)
  const election = LeaderElection.make("primary", { value: Schema.Number })

  /** All processes that there have been, in the order in which they started. */
  const started: Array<{ readonly name: string; readonly process: Process<CandidateEvent> }> = []
  const candidates: Array<Process<CandidateEvent>> = []
  /** Starts a candidate in the place of the one that had that number. */
  const startCandidate = Effect.fnUntraced(function* (number: number) {
    const { name } = election
    const process = yield* start("candidate", {
      url: server.url,
      election: name,
      number,
      watchdogLeaseTime: leaseMillis,
      ...settings
    })
    started.push({ name: `process ${started.length + 1}`, process })
    candidates[number] = process
  })
  for (let number = 0; number < candidateCount; number++) yield* startCandidate(number)
  for (const candidate of candidates) yield* candidate.told("ready")

  const leader = watcher.run(Effect.option(LeaderElection.leader(election)))

  return {
    server,
    candidates,
    startCandidate,
    /** The server's time, microseconds. */
    serverMicros: Effect.map(
      Effect.promise(() => redis.time()),
      ([seconds, micros]) => Number(seconds) * 1_000_000 + Number(micros)
    ),
    /** Waits for a leader of a later term. */
    leaderAfter: (term: bigint): Effect.Effect<Term> =>
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
      ),
    /** Waits until the leader has found that it leads, and has written that down. */
    leaderWorks: ({ term }: Term) =>
      eventually(
        "the leader works",
        () => redis.lrange("primary:log", -1, -1).catch(() => []),
        ([last]) => last === String(term)
      ),
    /** How many terms were written down after a later one. */
    lateWrites: Effect.map(
      Effect.promise(() => redis.lrange("primary:log", 0, -1)),
      (terms) => {
        let highest = 0n
        let late = 0
        for (const term of terms.map(BigInt)) {
          if (term < highest) late++
          else highest = term
        }
        return late
      }
    ),
    /** How many have led. */
    get terms(): number {
      const terms = started.flatMap(({ process }) =>
        process.events.flatMap((event) => (event.event === "leads" ? [event.term] : []))
      )
      return new Set(terms).size
    },
    /** How long it took, milliseconds, from each resignation until the next leader was told that it was elected. */
    get handOvers(): ReadonlyArray<number> {
      const elected = new Map<string, number>()
      const resigned: Array<{ readonly term: string; readonly at: number }> = []
      for (const { process } of started) {
        for (const event of process.events) {
          if (event.event === "elected") elected.set(event.term, event.at)
          else if (event.event === "resigned") resigned.push(event)
        }
      }
      const terms = [...elected.keys()].map(BigInt).sort((a, b) => (a < b ? -1 : 1))
      return resigned.flatMap(({ at, term }) => {
        const next = terms.find((other) => other > BigInt(term))
        return next === undefined ? [] : [(elected.get(String(next))! - at) / 1000]
      })
    },
    /** What must never happen, and did. */
    get violations(): ReadonlyArray<string> {
      const checks: Array<Check> = []
      for (const { name, process } of started) {
        for (const event of process.events) {
          if (event.event === "leads") checks.push({ process: name, term: BigInt(event.term), at: event.at })
        }
      }
      return rivals(checks)
    }
  }
})

export type ElectionSite = Effect.Success<ReturnType<typeof openElection>>

/** What becomes of the leader, of another candidate, or of Redis; a blink is a stop that is shorter than the lease. */
export const faults = ["kill", "stop", "blink", "resign", "restart", "kill another", "stop another"] as const
export type Fault = (typeof faults)[number]

export interface FaultTimes {
  /** How long a process stays stopped, milliseconds: after its place was taken, where it led. */
  readonly stopMillis: number
  /** How long Redis is away, milliseconds. */
  readonly awayMillis: number
}

/**
 * Does it, and waits until somebody leads; tells who, and how long it took until another leader was elected, by the server's time:
 * undefined where the leader was none to replace.
 */
export const playFault = Effect.fnUntraced(function* (
  site: ElectionSite,
  fault: Fault,
  now: Term,
  { awayMillis, stopMillis }: FaultTimes
) {
  yield* site.leaderWorks(now)
  const number = fault.endsWith("another") ? (now.number + 1) % candidateCount : now.number
  const process = site.candidates[number]!
  const since = yield* site.serverMicros
  const successor = Effect.map(site.leaderAfter(now.term), (next) => ({
    now: next,
    millis: (Number(next.term) - since) / 1000
  }))
  const leader = Effect.map(site.leaderAfter(now.term - 1n), (now) => ({ now, millis: undefined }))
  switch (fault) {
    case "resign":
      yield* process.signal("SIGTERM")
      return yield* successor
    case "kill": {
      yield* process.signal("SIGKILL")
      const next = yield* successor
      yield* site.startCandidate(number)
      return next
    }
    case "kill another":
      yield* process.signal("SIGKILL")
      yield* site.startCandidate(number)
      return yield* leader
    case "stop": {
      yield* process.signal("SIGSTOP")
      const next = yield* successor
      yield* Effect.sleep(stopMillis)
      yield* process.signal("SIGCONT")
      return next
    }
    case "blink":
    case "stop another":
      yield* process.signal("SIGSTOP")
      yield* Effect.sleep(stopMillis)
      yield* process.signal("SIGCONT")
      return yield* leader
    case "restart":
      // with all that it knows: the leader goes on, or somebody else does
      yield* site.server.kill
      yield* Effect.sleep(awayMillis)
      yield* site.server.restart
      return yield* leader
  }
})
