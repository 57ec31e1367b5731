/**
 * An election as a value, and the course of a campaign: acquire the lock, then announce the term in the record beside it.
 */
import type * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { Fiber } from "effect/Fiber"
import { identity } from "effect/Function"
import * as Option from "effect/Option"
import * as Pipeable from "effect/Pipeable"
import * as References from "effect/References"
import * as Stream from "effect/Stream"
import type { AcquireError, LockStoreError } from "../../LockError.ts"
import type { Family, Prepare, Prepared } from "../acquire/sections.ts"
import type { Service } from "../client/RedisLock.ts"
import type { Restore } from "../hold/guard.ts"
import type { Hold } from "../hold/Hold.ts"
import { Identity, Owner } from "../hold/owner.ts"
import { spanAttributesOf } from "../locks/heldLocks.ts"
import { LockImpl, PreparedLockAcquire } from "../locks/LockImpl.ts"
import type { Resolved } from "../locks/Resolved.ts"
import { type Invalid, isInvalid } from "../options/invalid.ts"
import { reentrant } from "../protocol/exclusive.ts"
import { fair } from "../protocol/fair.ts"
import { printsAs } from "../report/printsAs.ts"
import { read, type RecordState } from "../store/operations/record.ts"
import { decodeOrWarn, type JsonText } from "./jsonText.ts"
import { HeldLeadership, isLossOf } from "./Leadership.ts"
import { watchRecord } from "./watchRecord.ts"

export const TypeId = "~effect-redis-lock/LeaderElection"

/** What any process can see of the leader. */
export interface SeenLeader<A> {
  readonly owner: string
  readonly term: bigint
  readonly value: Option.Option<A>
}

export class LeaderElectionImpl<A, R> extends Pipeable.Class {
  declare readonly [TypeId]: { readonly _A: (_: A) => A; readonly _R: (_: never) => R }
  readonly name: string
  readonly json: JsonText<A>
  readonly fair: boolean
  /** Used without `fair`, and on a quorum, which has no fair locks. */
  readonly #plain: LockImpl<R>
  readonly #fair: LockImpl<R>

  constructor(json: JsonText<A>, fair: boolean, locks: { readonly plain: LockImpl<R>; readonly fair: LockImpl<R> }) {
    super()
    this.name = locks.plain.name
    this.json = json
    this.fair = fair
    this.#plain = locks.plain
    this.#fair = locks.fair
  }

  provide(service: Service): LeaderElectionImpl<A, never> {
    const locks = { plain: this.#plain.provide(service), fair: this.#fair.provide(service) }
    return new LeaderElectionImpl<A, never>(this.json, this.fair, locks as never)
  }

  lockFor(fiber: Fiber<unknown, unknown>): LockImpl<R> {
    return this.fair && this.#plain.invalid === null && !this.#plain.clientOf(fiber).isQuorum ? this.#fair : this.#plain
  }

  resolve(fiber: Fiber<unknown, unknown>): Resolved | Invalid {
    return this.#plain.resolve(fiber)
  }
}

Object.defineProperty(LeaderElectionImpl.prototype, TypeId, { value: { _A: identity, _R: identity } })

printsAs(LeaderElectionImpl.prototype, ({ name }) => ({ _id: "effect-redis-lock/LeaderElection", name }))

export const makeElection = <A, R>(name: string, json: JsonText<A>, isFair: boolean): LeaderElectionImpl<A, R> =>
  new LeaderElectionImpl<A, R>(json, isFair, {
    plain: new LockImpl<R>(name, reentrant, undefined, undefined),
    fair: new LockImpl<R>(name, fair, undefined, undefined)
  })

/** The leaderships around the running code, innermost first. */
interface Terms {
  readonly held: HeldLeadership
  readonly outer: Terms | undefined
}

const CurrentTerms = Context.Reference<Terms | undefined>("effect-redis-lock/CurrentTerms", {
  defaultValue: (): Terms | undefined => undefined
})

/** The leadership of this election under which the current code runs. */
export const currentTerm = (
  election: LeaderElectionImpl<any, unknown>,
  fiber: Fiber<unknown, unknown>
): HeldLeadership | Invalid | undefined => {
  const at = election.resolve(fiber)
  if (isInvalid(at)) return at
  let terms = fiber.getRef(CurrentTerms)
  while (terms !== undefined && !terms.held.isOf(at.client, at.keys)) terms = terms.outer
  return terms?.held
}

export const leaderships: Family<HeldLeadership> = {
  inside: (context, held, fiber) =>
    Context.add(
      Context.add(context, CurrentTerms, { held, outer: fiber.getRef(CurrentTerms) }),
      References.CurrentLogAnnotations,
      { ...fiber.getRef(References.CurrentLogAnnotations), election: held.name }
    ),
  acquireSpan: "LeaderElection.campaign",
  holdSpan: "LeaderElection.lead",
  spanAttributes: ({ hold }) => spanAttributesOf(hold),
  warn: ({ name, owner }, problems) =>
    Effect.annotateLogs(Effect.logWarning("A leader's scope has closed, but resigning failed.", problems), {
      election: name,
      owner
    })
}

/** A candidacy: acquires the lock, and announces its term before the caller learns that it leads. */
class Campaign implements Prepared<HeldLeadership> {
  readonly #request: PreparedLockAcquire<never>
  /** The value that the leader announces with its term. */
  readonly #proclaimed: string

  constructor(request: PreparedLockAcquire<never>, proclaimed: string) {
    this.#request = request
    this.#proclaimed = proclaimed
  }

  get name(): string {
    return this.#request.name
  }

  get label(): string {
    return "election"
  }

  acquire(restore: Restore): Effect.Effect<HeldLeadership, AcquireError> {
    return Effect.flatMap(this.#request.acquire(restore), (hold) =>
      // a term that ended before it was announced does not count: the candidate tries again
      Effect.flatMap(this.#announce(hold, restore), (held) => (held ? Effect.succeed(held) : this.acquire(restore)))
    )
  }

  tryAcquire(restore: Restore): Effect.Effect<Option.Option<HeldLeadership>, LockStoreError> {
    return Effect.flatMap(this.#request.tryAcquire(restore), (hold) =>
      Option.isNone(hold) ? Effect.succeedNone : Effect.map(this.#announce(hold.value, restore), Option.fromUndefinedOr)
    )
  }

  /** Undefined if the lock was lost meanwhile. */
  #announce(hold: Hold, restore: Restore): Effect.Effect<HeldLeadership | undefined, LockStoreError> {
    const leadership = new HeldLeadership(this.#request.client, hold)
    return Effect.matchCauseEffect(restore(leadership.write(this.#proclaimed)), {
      onSuccess: () => Effect.succeed(leadership),
      onFailure: (cause) =>
        Effect.andThen(
          Effect.ignore(leadership.releaseNow()),
          isLossOf(hold.name, cause) ? Effect.undefined : Effect.failCause(cause as Cause.Cause<LockStoreError>)
        )
    })
  }
}

/** The candidacy of a fiber; `proclaimed` is empty if it proclaims nothing. */
export const prepareCampaign =
  (election: Pick<LeaderElectionImpl<never, unknown>, "lockFor">, proclaimed: string): Prepare<HeldLeadership> =>
  (fiber) => {
    const lock = election.lockFor(fiber) as LockImpl<unknown>
    const asked = lock.prepare(fiber, undefined, undefined)
    if (isInvalid(asked)) return asked
    // no two candidates share a term, even in one fiber or scope
    const own = new Identity(new Owner({}, undefined), fiber.id, undefined)
    return new Campaign(new PreparedLockAcquire<never>(lock, asked.client, asked.keys, own, asked), proclaimed)
  }

/** The leader: the holder of the lock, once it has announced its term. */
const leaderIn = <A>(
  { json, name }: LeaderElectionImpl<A, unknown>,
  { holder, record }: RecordState
): Effect.Effect<Option.Option<SeenLeader<A>>> => {
  if (record === undefined || record.owner !== holder) return Effect.succeedNone
  const { owner, token: term, value: text } = record
  return text === ""
    ? Effect.succeedSome({ owner, term, value: Option.none() })
    : Effect.map(decodeOrWarn(json, text, { election: name }), (value) => Option.some({ owner, term, value }))
}

export const leaderOf = <A>(
  election: LeaderElectionImpl<A, unknown>
): Effect.Effect<Option.Option<SeenLeader<A>>, LockStoreError | Invalid> =>
  Effect.withFiber<Option.Option<SeenLeader<A>>, LockStoreError | Invalid>((fiber) => {
    const at = election.resolve(fiber)
    if (isInvalid(at)) return Effect.fail(at)
    return Effect.flatMap(at.client.store.run(read(at.keys, "leader")), (state) => leaderIn(election, state))
  })

/** While this stays the same, nothing has changed. */
const signOf = ({ holder, record }: RecordState): string =>
  record === undefined || record.owner !== holder ? "" : `${record.owner} ${record.version}`

export const leaderChanges = <A>(
  election: LeaderElectionImpl<A, unknown>
): Stream.Stream<Option.Option<SeenLeader<A>>, LockStoreError | Invalid> =>
  Stream.unwrap(
    Effect.withFiber((fiber) => {
      const at = election.resolve(fiber)
      if (isInvalid(at)) return Effect.fail(at)
      return Effect.succeed(
        watchRecord(at.client, at.keys, "leader").pipe(
          Stream.changesWith((before, now) => signOf(before) === signOf(now)),
          Stream.mapEffect((state) => leaderIn(election, state))
        )
      )
    })
  )
