/**
 * A store made of independent stores, of which a majority decides, as the Redlock specification describes
 * (https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/). Every operation goes to all members at once; what
 * a majority says counts. What the specification says of validity, the owner and the watchdog needs nothing here: a client
 * counts a lease from before the operation was sent, uses each owner once, and takes back what it was not granted.
 *
 * Fencing tokens: a member's token is greater than every token that it has granted or been told. A grant counts only when a
 * majority has its token, or a greater one, on record. Any two majorities have a member in common, so the next grant of the name
 * is greater, however much the members' clocks differ. So also for a reader's token, or the next writer's could be lower.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberSet from "effect/FiberSet"
import * as Stream from "effect/Stream"
import type { LockStoreError } from "../../../LockError.ts"
import type { KeyType, Signal } from "../../../RedisDriver.ts"
import type { LockClient } from "../../client/LockClient.ts"
import type { ClientOptions, QuorumTimes } from "../../options/ClientOptions.ts"
import { report } from "../../report/defects.ts"
import { AlarmClock, monotonicMillis, reconnecting } from "../../time/clock.ts"
import { ExpiringMap } from "../../time/ExpiringMap.ts"
import { mayHaveRun } from "../failures.ts"
import * as lock from "../operations/lock.ts"
import {
  type AcquireReply,
  type AcquireRule,
  majority,
  type QuorumRule,
  type StoreCommand
} from "../operations/StoreOperation.ts"
import { fromCallback } from "../startable.ts"
import type { Store } from "../Store.ts"
import { keyAt, majorityOf, type Member, memberText, type Outcome, type Outcomes, QuorumCall } from "./QuorumCall.ts"
import { tellingLater } from "./stragglers.ts"
import { TokenBound } from "./TokenBound.ts"
import { countVotes, decide, denialsIn, notReached, repliesIn, withGivenBack } from "./votes.ts"

type QuorumSettings = QuorumTimes & Pick<ClientOptions, "watchdogLeaseMillis" | "tokenRetentionMillis">

const shortestTimeoutMillis = 1000

/** How much longer than a majority of the members the others may take where some have denied the lock, at least. */
const shortestHurryMillis = 5

/** At most so many names: what is forgotten is soon known again. */
const mostMinorities = 1000

/** The store of a quorum of these members; `outliving` runs what outlives its scope. */
export const makeQuorumStore = Effect.fnUntraced(function* (
  members: ReadonlyArray<Member>,
  settings: QuorumSettings,
  outliving?: LockClient["fork"]
) {
  const now = monotonicMillis(yield* Clock.Clock)
  const context = yield* Effect.context<never>()
  const alarms = new AlarmClock(now, (defect) => report(context, defect))
  yield* Effect.forkScoped(alarms.run)
  const fork = outliving ?? (yield* FiberSet.makeRuntime<never>())

  const required = majorityOf(members)
  const tokenBound = new TokenBound(members, now)
  const tellLater = members.map((member) => tellingLater(member, now, fork))
  /** Acquisitions that are decided but that some members have not answered yet, by owner. */
  const unanswered = new Map<string, QuorumCall<AcquireReply>>()
  /** Members at which an acquisition that has failed there may still take effect, by owner. */
  const unsettled = new ExpiringMap<ReadonlyArray<Member>>()
  /** By name, the owner that holds a lock at a minority of the members and so splits the votes of others, and since when. */
  const minorities = new Map<string, { readonly owner: string; readonly since: number }>()

  /** A member's time to answer: long enough for a round trip, small against the lease. */
  const timeoutFor = (leaseMillis: number): number =>
    settings.memberTimeoutMillis ?? Math.min(leaseMillis / 4, Math.max(shortestTimeoutMillis, leaseMillis / 50))

  /** Runs any operation but an acquisition. */
  const vote = <A>(
    command: StoreCommand<A>,
    rule: QuorumRule<A>,
    timeoutMillis = timeoutFor(settings.watchdogLeaseMillis),
    acquired = 0
  ): Effect.Effect<A, LockStoreError> => {
    const owner = String(command.args[0])
    return fromCallback((resume) => {
      // a member that answers NOSCRIPT would be sent the rest of the owner's acquisition again, behind the release
      if (rule.releases) unanswered.get(owner)?.abandon()
      const steps = {
        command,
        timeoutMillis,
        conclude: (outcomes: Outcomes<A>) => {
          const counted = rule.releases ? withGivenBack(outcomes, members, command) : outcomes
          const reply = decide(rule, counted)
          if (reply !== undefined) return Exit.succeed(reply)
          if (counted.includes(undefined)) return undefined
          return notReached(members, command, counted, acquired, repliesIn(counted).length)
        },
        onSettled: (outcomes: ReadonlyArray<Outcome<A>>) => {
          if (rule.releases) releaseLater(command, owner, outcomes)
        }
      }
      return new QuorumCall(members, alarms, steps, resume).start(now())
    })
  }

  /**
   * Members that could not be told of a release are told when they answer again, so that no ghost keeps others out. Those
   * where the acquisition may still take effect are told when it cannot any more.
   */
  const releaseLater = <A>(command: StoreCommand<A>, owner: string, outcomes: ReadonlyArray<Outcome<A>>): void => {
    if (repliesIn(outcomes).length < required) return // the caller tries again
    const releasedAt = now()
    const late = unsettled.get(owner, releasedAt)
    unsettled.delete(owner)
    const { overAt = releasedAt + settings.watchdogLeaseMillis } = command
    for (let i = 0; i < outcomes.length; i++) {
      const outcome = outcomes[i]!
      const member = members[i]!
      const isUnsettled = late?.value.includes(member) === true
      // an acquisition takes effect once: what was released there was all there is
      if (Exit.isSuccess(outcome) && (!isUnsettled || Number(outcome.value) >= 1)) continue
      const from = isUnsettled ? late.until + 1 : releasedAt
      // what takes effect late also ends late
      const until = Math.max(overAt, from) + member.client.store.commandLifeMillis
      tellLater[i]!({ command, from, until, mayBeNothing: isUnsettled })
    }
  }

  const acquire = (
    asked: StoreCommand<AcquireReply>,
    rule: AcquireRule
  ): Effect.Effect<AcquireReply, LockStoreError> => {
    const owner = String(asked.args[0])
    const timeoutMillis = timeoutFor(Number(asked.args[1]))
    return fromCallback<AcquireReply, LockStoreError>((resume) => {
      const sentAt = now()
      const command = tokenBound.add(asked)
      const writerToken = rule.writerToken?.(asked.args)
      const steps = {
        command,
        timeoutMillis,
        conclude: (outcomes: Outcomes<AcquireReply>) => {
          const result = countVotes(outcomes, writerToken, settings.retryMillis)
          const tookMillis = now() - sentAt
          if (result === undefined) {
            // somebody is kept out, by a split vote everybody: members slower than the others by far are not waited for
            const isHurried = isContended(asked.keys[0]!, outcomes, timeoutMillis)
            if (isHurried) call.hurry(now() + Math.max(shortestHurryMillis, tookMillis))
            return undefined
          }
          tokenBound.took(tookMillis)
          if (!call.isSettled) unanswered.set(owner, call)
          if (result._tag === "Lost") return Exit.succeed(result.denial)
          if (result._tag === "Failed") return notReached(members, command, outcomes, result.acquired)
          return result.onRecord >= required ? Exit.succeed(result.token) : recorded(command, rule, result.token)
        },
        onSettled: (outcomes: ReadonlyArray<Outcome<AcquireReply>>) => {
          unanswered.delete(owner)
          noteUnsettled(owner, outcomes)
        }
      }
      const call: QuorumCall<AcquireReply> = new QuorumCall(members, alarms, steps, resume)
      return call.start(sentAt)
    })
  }

  /** A request whose outcome at a member is unknown may take effect there for as long as a command lives. */
  const noteUnsettled = (owner: string, outcomes: ReadonlyArray<Outcome<AcquireReply>>): void => {
    if (outcomes.every(Exit.isSuccess)) return
    const unknown = members.filter((_, i) => {
      const outcome = outcomes[i]!
      return Exit.isFailure(outcome) && mayHaveRun(outcome.cause)
    })
    const lifeMillis = Math.max(...unknown.map(({ client }) => client.store.commandLifeMillis))
    if (unknown.length > 0) unsettled.set(owner, unknown, now() + lifeMillis, now())
  }

  /**
   * Whether a majority has answered, and some of it have granted the lock to another owner that contends for it. An owner that has kept the same
   * minority for longer than a request takes does not: that is a single server's lock of the same name, or a leftover that nobody has released.
   */
  const isContended = (name: string, outcomes: Outcomes<AcquireReply>, timeoutMillis: number): boolean => {
    const owners = denialsIn(outcomes).map(({ owner }) => owner)
    const [owner] = owners
    if (owner === undefined || repliesIn(outcomes).length < required) return false
    if (owners.length >= required) return true
    const known = minorities.get(name)
    if (known !== undefined && owners.includes(known.owner)) return now() - known.since < timeoutMillis
    if (minorities.size === mostMinorities) minorities.clear()
    minorities.set(name, { owner, since: now() })
    return true
  }

  /** Has a majority record a token before its grant counts. */
  const recorded = (
    { args, keys }: StoreCommand<AcquireReply>,
    { keepsTokens }: AcquireRule,
    token: number
  ): Effect.Effect<number, LockStoreError> => {
    const leaseMillis = Number(args[1])
    const life = keepsTokens ? 0 : leaseMillis + settings.tokenRetentionMillis
    const raise = lock.raiseToken(keys[0]!, keys[1]!, token, life)
    return Effect.as(vote(raise, majority, timeoutFor(leaseMillis), required), token)
  }

  const first = members[0]!
  // asked each time, as members may come later
  const longest = (of: "commandLifeMillis" | "commandTimeoutMillis") =>
    Math.max(...members.map(({ client }) => client.store[of]))
  const store: Store = {
    run: <A>(command: StoreCommand<A>) => {
      const { name, quorum } = command.operation
      if (quorum === undefined) return Effect.die(new Error(`a quorum cannot run ${name}`))
      if (quorum.acquires === undefined) return vote(command, quorum)
      // an operation with this rule has this answer
      return acquire(command as StoreCommand<any>, quorum.acquires) as Effect.Effect<any, LockStoreError>
    },
    subscribe: (channel) => mergedFrom(members, (member) => memberSignals(member, channel)),
    scan: (pattern, type) => scanMajority(members, pattern, type),
    publish: first.client.store.publish,
    slot: (key) => {
      // where only some are clusters, all of which have the same slots
      const member = members.find(({ client: { store } }) => store.slot("a") !== store.slot("b")) ?? first
      return member.client.store.slot(keyAt(member, key))
    },
    get commandLifeMillis() {
      return longest("commandLifeMillis")
    },
    get commandTimeoutMillis() {
      return longest("commandTimeoutMillis")
    },
    serverMicros: (key) => tokenBound.highestClock(key),
    longestSince: () => Number.POSITIVE_INFINITY,
    // members would hand it over to different clients
    handsOver: false,
    invalidations: mergedFrom(members, memberInvalidations)
  }
  return store
})

/** The streams of all members, side by side. */
const mergedFrom = <A, E>(members: ReadonlyArray<Member>, streamOf: (member: Member) => Stream.Stream<A, E>) =>
  Stream.mergeAll(members.map(streamOf), { concurrency: "unbounded" })

/** Warns, or tells, of one member. */
const annotated = (member: Member, log: Effect.Effect<void>) => Effect.annotateLogs(log, { member: memberText(member) })

/** The signals of one member. They never fail, so that a member that is down does not silence the others. */
const memberSignals = (member: Member, channel: string): Stream.Stream<Signal, LockStoreError> => {
  let isDown = false
  return Stream.suspend(() => member.client.store.subscribe(keyAt(member, channel))).pipe(
    Stream.tap(() => Effect.sync(() => (isDown = false))),
    Stream.tapError((error) =>
      Effect.suspend(() => {
        if (isDown) return Effect.void
        isDown = true
        return annotated(member, Effect.logWarning("No wake-up signals from one server of the quorum.", error))
      })
    ),
    Stream.retry(reconnecting)
  )
}

/**
 * What one member tells of changes, even if it joins later; a lock with another name there is told of without a name. A member that
 * fails, or refuses to tell, does not silence the others.
 */
const memberInvalidations = (member: Member): Stream.Stream<Signal, LockStoreError> => {
  const told = Stream.suspend(() => member.client.store.invalidations ?? Stream.empty).pipe(
    Stream.catchIf(
      (error) => !error.isTransient,
      (error) => {
        const problem =
          "One server of the quorum does not report locks that somebody else deletes (CLIENT TRACKING): if it is needed for a majority, a holder notices that at its next renewal."
        return Stream.fromEffectDrain(annotated(member, Effect.logInfo(problem, error)))
      }
    ),
    Stream.retry(reconnecting)
  )
  return member.keyOf === undefined ? told : Stream.map(told, () => ({ _tag: "Subscribed" }))
}

/** The keys at all members that answer: what a majority keeps is at one of them, unless a majority fails. */
const scanMajority = (
  members: ReadonlyArray<Member>,
  pattern: string,
  type: KeyType
): Stream.Stream<string, LockStoreError> =>
  Stream.suspend(() => {
    const outcomes: Array<Outcome<unknown> | undefined> = members.map(() => undefined)
    let failures = 0
    const scans = members.map(({ client }, i) =>
      Stream.catch(client.store.scan(pattern, type), (failure) => {
        outcomes[i] = Exit.fail(failure)
        return ++failures <= members.length - majorityOf(members)
          ? Stream.empty
          : Stream.fromEffect(notReached(members, { operation: { name: "scan" }, keys: [pattern] }, outcomes, 0))
      })
    )
    return Stream.mergeAll(scans, { concurrency: "unbounded" })
  })
