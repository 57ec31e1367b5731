/**
 * Five processes that campaign on a Redis of their own, and the faults that can be injected.
 */
import { RedisServer } from "@effect-redis-lock/testing"
import { Effect, Option, Schema, type Scope } from "effect"
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

/** The leader's number, and its term: the server's time of the grant, microseconds. */
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

  /** Every process so far, in the order they were started. */
  const started: Array<{ readonly name: string; readonly process: Process<CandidateEvent> }> = []
  const candidates: Array<Process<CandidateEvent>> = []
  /** Starts a candidate, replacing the one with that number. */
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

  const seenLeader = Effect.map(watcher.run(Effect.option(LeaderElection.leader(election))), (seen) => {
    const found = Option.getOrUndefined(Option.flatten(seen))
    return { term: String(found?.term ?? 0), number: Option.getOrUndefined(found?.value ?? Option.none()) }
  })
  const termOf = ({ number, term }: Effect.Success<typeof seenLeader>): Term => ({
    number: number!,
    term: BigInt(term)
  })

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
        eventually("somebody leads", seenLeader, (seen) => BigInt(seen.term) > term),
        termOf
      ),
    /** Waits for a leader that has recorded that it leads. On a busy machine a leader may also lose its lease without our doing. */
    workingLeader: Effect.map(
      eventually(
        "the leader works",
        Effect.all([seenLeader, Effect.promise(() => redis.lrange("primary:log", -1, -1).catch(() => []))]),
        ([{ term }, [last]]) => last === term
      ),
      ([seen]) => termOf(seen)
    ),
    /** How many writes arrived after one of a later term. */
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
    /** How many terms there have been. */
    get terms(): number {
      const terms = started.flatMap(({ process }) =>
        process.events.flatMap((event) => (event.event === "leads" ? [event.term] : []))
      )
      return new Set(terms).size
    },
    /** Milliseconds from the end of each `resign` until the next leader knew that it was elected. */
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
    /** Every case of two leaders at once. */
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

/** What is done to the leader, to another candidate, or to Redis. A blink is a stop shorter than the lease. */
export const faults = ["kill", "stop", "blink", "resign", "restart", "kill another", "stop another"] as const
export type Fault = (typeof faults)[number]

export interface FaultTimes {
  /** How long a process stays stopped, milliseconds; for a "stop", counted from the election of the next leader. */
  readonly stopMillis: number
  /** How long Redis is away, milliseconds. */
  readonly awayMillis: number
}

/**
 * Injects a fault. If it forces a new election, waits for that and returns how long it took by the server's time, milliseconds.
 */
export const playFault = Effect.fnUntraced(function* (
  site: ElectionSite,
  fault: Fault,
  { awayMillis, stopMillis }: FaultTimes
): Effect.fn.Return<number | undefined, RedisServer.RedisServerError, Scope.Scope> {
  const leader = yield* site.workingLeader
  const number = fault.endsWith("another") ? (leader.number + 1) % candidateCount : leader.number
  const process = site.candidates[number]!
  const since = yield* site.serverMicros
  const succession = Effect.map(site.leaderAfter(leader.term), ({ term }) => (Number(term) - since) / 1000)
  switch (fault) {
    case "resign":
      yield* process.signal("SIGTERM")
      return yield* succession
    case "kill": {
      yield* process.signal("SIGKILL")
      const millis = yield* succession
      yield* site.startCandidate(number)
      return millis
    }
    case "kill another":
      yield* process.signal("SIGKILL")
      yield* site.startCandidate(number)
      return undefined
    case "stop": {
      yield* process.signal("SIGSTOP")
      const millis = yield* succession
      yield* Effect.sleep(stopMillis)
      yield* process.signal("SIGCONT")
      return millis
    }
    case "blink":
    case "stop another":
      yield* process.signal("SIGSTOP")
      yield* Effect.sleep(stopMillis)
      yield* process.signal("SIGCONT")
      return undefined
    case "restart":
      // with its data: either the same leader continues or another is elected
      yield* site.server.kill
      yield* Effect.sleep(awayMillis)
      yield* site.server.restart
      return undefined
  }
})
