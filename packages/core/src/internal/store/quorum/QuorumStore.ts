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
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Stream from "effect/Stream"
import type { LockStoreError } from "../../../LockError.ts"
import type { KeyType, Signal } from "../../../RedisDriver.ts"
import type { ClientOptions, QuorumTimes } from "../../options/ClientOptions.ts"
import { type AlarmClock, reconnecting } from "../../time/clock.ts"
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
import { UnsettledCommands, UntoldReleases } from "./stragglers.ts"
import { TokenBound } from "./TokenBound.ts"
import { countVotes, decide, denialsIn, notReached, repliesIn, type Vote, withGivenBack } from "./votes.ts"

type QuorumSettings = QuorumTimes & Pick<ClientOptions, "watchdogLeaseMillis" | "tokenRetentionMillis">

const shortestTimeoutMillis = 1000

/** How much longer than a majority of the members the others may take where some have denied the lock, at least. */
const shortestHurryMillis = 5

/** At most so many names: what is forgotten is soon known again. */
const mostMinorities = 1000

export class QuorumStore {
  readonly members: ReadonlyArray<Member>
  readonly required: number
  readonly #settings: QuorumSettings
  readonly #tokenBound: TokenBound
  readonly #alarms: AlarmClock
  readonly #now: () => number
  /** By member. */
  readonly #untold: ReadonlyArray<UntoldReleases>
  /** Acquisitions that are decided but that some members have not answered yet, by owner. */
  readonly #unanswered = new Map<string, Pick<QuorumCall<AcquireReply, unknown>, "abandon">>()
  /** By name, the owner that holds a lock at a minority of the members and so splits the votes of others, and since when. */
  readonly #minorities = new Map<string, { readonly owner: string; readonly since: number }>()
  /** Members at which an acquisition that has failed may still take effect, by owner. */
  readonly #unsettled = new UnsettledCommands()

  constructor(
    members: ReadonlyArray<Member>,
    settings: QuorumSettings,
    alarms: AlarmClock,
    now: () => number,
    fork: (effect: Effect.Effect<void>) => void
  ) {
    this.members = members
    this.required = majorityOf(members)
    this.#settings = settings
    this.#tokenBound = new TokenBound(members, now)
    this.#alarms = alarms
    this.#now = now
    this.#untold = members.map((member) => new UntoldReleases(member, now, fork))
  }

  get service(): Store {
    const { members } = this
    const first = members[0]!
    // asked each time, as members may come later
    const longest = (of: "commandLifeMillis" | "commandTimeoutMillis") =>
      Math.max(...members.map(({ store }) => store[of]))
    return {
      run: (command) => this.#run(command),
      subscribe: (channel) =>
        Stream.mergeAll(
          members.map((member) => memberSignals(member, channel)),
          { concurrency: "unbounded" }
        ),
      scan: (pattern, type) => scanMajority(members, this.required, pattern, type),
      publish: first.store.publish,
      slot: (key) => {
        // where only some are clusters, all of which have the same slots
        const member = members.find(({ store }) => store.slot("a") !== store.slot("b")) ?? first
        return member.store.slot(keyAt(member, key))
      },
      get commandLifeMillis() {
        return longest("commandLifeMillis")
      },
      get commandTimeoutMillis() {
        return longest("commandTimeoutMillis")
      },
      serverMicros: (key) => this.#tokenBound.highestClock(key),
      longestSince: () => Number.POSITIVE_INFINITY,
      // members would hand it over to different clients
      handsOver: false,
      invalidations: Stream.mergeAll(members.map(memberInvalidations), { concurrency: "unbounded" })
    }
  }

  #run<A>(command: StoreCommand<A>): Effect.Effect<A, LockStoreError> {
    const { name, quorum } = command.operation
    if (quorum === undefined) return Effect.die(new Error(`a quorum cannot run ${name}`))
    // an operation with this rule has this answer
    if (quorum.acquires !== undefined) {
      const granted = this.#acquire(command as StoreCommand<unknown> as StoreCommand<AcquireReply>, quorum.acquires)
      return granted as Effect.Effect<unknown, LockStoreError> as Effect.Effect<A, LockStoreError>
    }
    return this.#vote(command, quorum)
  }

  /** A member's time to answer: long enough for a round trip, small against the lease. */
  #timeout(leaseMillis: number): number {
    return (
      this.#settings.memberTimeoutMillis ?? Math.min(leaseMillis / 4, Math.max(shortestTimeoutMillis, leaseMillis / 50))
    )
  }

  /** Runs any operation but an acquisition. */
  #vote<A>(
    command: StoreCommand<A>,
    rule: QuorumRule<A>,
    timeoutMillis = this.#timeout(this.#settings.watchdogLeaseMillis),
    acquired = 0
  ): Effect.Effect<A, LockStoreError> {
    const owner = String(command.args[0])
    return fromCallback((resume) => {
      // a member that answers NOSCRIPT would be sent the rest of the owner's acquisition again, behind the release
      if (rule.releases) this.#unanswered.get(owner)?.abandon()
      const call = new QuorumCall<A, Outcome<A>>(this.members, this.#alarms, {
        command,
        timeoutMillis,
        conclude: (outcomes, isLast) => {
          const counted = rule.releases ? withGivenBack(outcomes, this.members, command) : outcomes
          const reply = decide(rule, counted, this.required, isLast)
          if (reply !== undefined) return Exit.succeed(reply)
          return isLast ? notReached(this.members, command, counted, acquired, repliesIn(counted).length) : undefined
        },
        onDecided: resume,
        onSettled: (outcomes) => {
          if (rule.releases) this.#releaseLater(command, owner, outcomes)
        }
      })
      call.start(this.#now())
      return call
    })
  }

  /**
   * Members that could not be told of a release are told when they answer again, so that no ghost keeps others out. Those
   * where the acquisition may still take effect are told when it cannot any more.
   */
  #releaseLater<A>(command: StoreCommand<A>, owner: string, outcomes: ReadonlyArray<Outcome<A>>): void {
    const told = repliesIn(outcomes).length
    if (told < this.required) return // the caller tries again
    const now = this.#now()
    const unsettled = this.#unsettled.get(owner, now)
    if (unsettled !== undefined) this.#unsettled.delete(owner)
    else if (told === outcomes.length) return
    const { overAt = now + this.#settings.watchdogLeaseMillis } = command
    for (let i = 0; i < outcomes.length; i++) {
      const outcome = outcomes[i]!
      const isUnsettled = unsettled?.value.includes(i) === true
      // an acquisition takes effect once: what was released there was all there is
      if (Exit.isSuccess(outcome) && (!isUnsettled || Number(outcome.value) >= 1)) continue
      const from = isUnsettled ? unsettled.until + 1 : now
      // what takes effect late also ends late
      const until = Math.max(overAt, from) + this.members[i]!.store.commandLifeMillis
      this.#untold[i]!.add({ command, from, until, mayBeNothing: isUnsettled })
    }
  }

  #acquire(command: StoreCommand<AcquireReply>, rule: AcquireRule): Effect.Effect<AcquireReply, LockStoreError> {
    const owner = String(command.args[0])
    const leaseMillis = Number(command.args[1])
    return fromCallback<AcquireReply, LockStoreError>((resume) => {
      const sentAt = this.#now()
      const timeoutMillis = this.#timeout(leaseMillis)
      const bounded = this.#tokenBound.add(command)
      const writerToken = rule.writerToken?.(command.args)
      const call: QuorumCall<AcquireReply, Effect.Effect<AcquireReply, LockStoreError>> = new QuorumCall(
        this.members,
        this.#alarms,
        {
          command: bounded,
          timeoutMillis,
          conclude: (outcomes, isLast) => {
            const vote = countVotes(outcomes, this.required, isLast, writerToken)
            if (vote !== undefined) return this.#outcomeOf(vote, outcomes, bounded, rule)
            // somebody is kept out, by a split vote everybody: members slower than the others by far are not waited for
            if (this.#isContended(command.keys[0]!, outcomes, timeoutMillis)) {
              const now = this.#now()
              call.hurry(now + Math.max(shortestHurryMillis, now - sentAt))
            }
            return undefined
          },
          onDecided: (outcome) => {
            this.#tokenBound.took(this.#now() - sentAt)
            if (!call.isSettled) this.#unanswered.set(owner, call)
            resume(outcome)
          },
          onSettled: (outcomes) => {
            this.#unanswered.delete(owner)
            this.#unsettled.note(owner, outcomes, this.members, this.#now())
          }
        }
      )
      call.start(sentAt)
      return call
    })
  }

  /**
   * Whether a majority has answered, and some of it have granted the lock to another owner that contends for it. An owner that has kept the same
   * minority for longer than a request takes does not: that is a single server's lock of the same name, or a leftover that nobody has released.
   */
  #isContended(name: string, outcomes: Outcomes<AcquireReply>, timeoutMillis: number): boolean {
    const owners = denialsIn(outcomes).map(({ owner }) => owner)
    const [owner] = owners
    if (owner === undefined || repliesIn(outcomes).length < this.required) return false
    if (owners.length >= this.required) return true
    const now = this.#now()
    const known = this.#minorities.get(name)
    if (known !== undefined && owners.includes(known.owner)) return now - known.since < timeoutMillis
    if (this.#minorities.size === mostMinorities) this.#minorities.clear()
    this.#minorities.set(name, { owner, since: now })
    return true
  }

  #outcomeOf(
    vote: Vote,
    outcomes: Outcomes<AcquireReply>,
    command: StoreCommand<AcquireReply>,
    rule: AcquireRule
  ): Effect.Effect<AcquireReply, LockStoreError> {
    switch (vote._tag) {
      case "Won": {
        return vote.onRecord >= this.required ? Exit.succeed(vote.token) : this.#record(command, rule, vote.token)
      }
      case "Lost":
        return Exit.succeed({
          remaining: vote.isSplit ? 0 : vote.remaining,
          owner: vote.owner,
          isPartial: vote.isPartial,
          pauseMillis: vote.isSplit ? Math.random() * this.#settings.retryMillis : 0
        })
      case "Failed":
        return notReached(this.members, command, outcomes, vote.acquired)
    }
  }

  /** Has a majority record a token before its grant counts. */
  #record(
    { args, keys }: StoreCommand<unknown>,
    { keepsTokens }: AcquireRule,
    token: number
  ): Effect.Effect<number, LockStoreError> {
    const leaseMillis = Number(args[1])
    const life = keepsTokens ? 0 : leaseMillis + this.#settings.tokenRetentionMillis
    const raise = lock.raiseToken(keys[0]!, keys[1]!, token, life)
    return Effect.as(this.#vote(raise, majority, this.#timeout(leaseMillis), this.required), token)
  }
}

/** The signals of one member. They never fail, so that a member that is down does not silence the others. */
const memberSignals = (member: Member, channel: string): Stream.Stream<Signal, LockStoreError> => {
  let isDown = false
  return Stream.suspend(() => member.store.subscribe(keyAt(member, channel))).pipe(
    Stream.tap(() =>
      Effect.sync(() => {
        isDown = false
      })
    ),
    Stream.tapError((error) =>
      Effect.suspend(() => {
        if (isDown) return Effect.void
        isDown = true
        return Effect.annotateLogs(Effect.logWarning("No wake-up signals from one server of the quorum.", error), {
          member: memberText(member)
        })
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
  const told = Stream.suspend(() => member.store.invalidations ?? Stream.empty).pipe(
    Stream.catch((error) =>
      error.isTransient
        ? Stream.fail(error)
        : Stream.fromEffectDrain(
            Effect.annotateLogs(
              Effect.logInfo(
                "One server of the quorum does not report locks that somebody else deletes (CLIENT TRACKING): if it is needed for a majority, a holder notices that at its next renewal.",
                error
              ),
              { member: memberText(member) }
            )
          )
    ),
    Stream.retry(reconnecting)
  )
  return member.keyOf === undefined ? told : Stream.map(told, () => ({ _tag: "Subscribed" }))
}

/** The keys at all members that answer: what a majority keeps is at one of them, unless a majority fails. */
const scanMajority = (
  members: ReadonlyArray<Member>,
  required: number,
  pattern: string,
  type: KeyType
): Stream.Stream<string, LockStoreError> =>
  Stream.suspend(() => {
    const outcomes: Array<Outcome<unknown> | undefined> = members.map(() => undefined)
    let failures = 0
    const scans = members.map(({ store }, i) =>
      Stream.catch(store.scan(pattern, type), (failure) => {
        outcomes[i] = Exit.fail(failure)
        return ++failures <= members.length - required
          ? Stream.empty
          : Stream.fromEffect(notReached(members, { operation: { name: "scan" }, keys: [pattern] }, outcomes, 0))
      })
    )
    return Stream.mergeAll(scans, { concurrency: "unbounded" })
  })
