/**
 * How the functions of `Lock` hold and use locks of any kind.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { Fiber } from "effect/Fiber"
import * as References from "effect/References"
import * as Scope from "effect/Scope"
import type { AcquireOptions, TokenOptions } from "../../AcquireOptions.ts"
import type { HoldingOf } from "../../Holding.ts"
import { InvalidLockOptions, type LockLost, type LockStoreError } from "../../LockError.ts"
import type { HolderState, LockState } from "../../LockState.ts"
import type { RedisLock } from "../../RedisLock.ts"
import { LockRequest } from "../acquire/acquire.ts"
import type { Family, Prepare, Prepared } from "../acquire/sections.ts"
import { boundClient, checkService, clientIn, type LockClient, resolveAt, type Resolved } from "../client/LockClient.ts"
import { type Hold, type InternalHolding, lossAround, ownHold } from "../hold/Hold.ts"
import { CurrentOwner, Identity, type Lease, Owner, sectionsInside } from "../hold/Lease.ts"
import { holdersIn, inspect } from "../kinds/inspect.ts"
import { type LockProtocol, reentrant } from "../kinds/kinds.ts"
import { type Invalid, isInvalid, refuseMinHold, timesOf } from "../options/acquireOptions.ts"
import { shown } from "../report/shown.ts"
import { labelled } from "../report/spans.ts"
import { runOrDescribe } from "../store/failures.ts"
import { checkName, type LockKeys } from "../store/keys.ts"
import { AnyLock, type PreparedAcquire, type PublicLock, TypeId } from "./AnyLock.ts"

/**
 * A lock under one name: checked when made, reported when used.
 */
export class LockImpl<R, E = never> extends AnyLock<R, E, bigint> {
  readonly name: string
  readonly kind: LockProtocol
  readonly options: AcquireOptions | undefined
  readonly client: LockClient | undefined
  readonly invalid: Invalid | null
  at: Resolved | undefined = undefined

  constructor(
    name: string,
    kind: LockProtocol,
    options: AcquireOptions | undefined,
    client: LockClient | undefined,
    invalid: Invalid | null = checkName(name) ?? null
  ) {
    super()
    this.name = typeof name === "string" ? name : shown(name)
    this.kind = kind
    this.options = options
    this.client = client
    this.invalid = invalid
  }

  get isBound(): boolean {
    return this.client !== undefined
  }

  provide(service: RedisLock["Service"]): LockImpl<Exclude<R, RedisLock>, E> {
    const { kind, name, options } = this
    const invalid = this.invalid ?? checkService(service) ?? null
    return new LockImpl<Exclude<R, RedisLock>, E>(name, kind, options, boundClient(service), invalid)
  }

  /** The client and the keys, or the problem with the name or the options. */
  resolve(fiber: Fiber<unknown, unknown>): Resolved | Invalid {
    return this.invalid ?? resolveAt(this, this.client ?? clientIn(fiber.context))
  }

  prepare(
    fiber: Fiber<unknown, unknown>,
    scope: Scope.Scope | undefined,
    options: AcquireOptions | undefined
  ): PreparedAcquire<E, bigint> | Invalid {
    const at = this.resolve(fiber)
    if (isInvalid(at)) return at
    const { client } = at
    const times = timesOf(options, this.options, client.store.acknowledges !== undefined)
    if (isInvalid(times)) return times
    const kept = client.isQuorum
      ? refuseMinHold(times, "a lock of a quorum")
      : this.kind.mode === "exclusive"
        ? undefined
        : refuseMinHold(times, "one side of a read-write lock")
    if (kept !== undefined) return kept
    if (client.isQuorum && this.kind.queued) return noQuorum(this.kind)
    // the type of the lock says which kinds can fail with `LockReentered`
    return new LockRequest(this, at, new Identity(fiber, scope), times) as PreparedAcquire<E, bigint>
  }

  get holding(): Effect.Effect<Hold | undefined, LockLost | Invalid> {
    return this.#with((client, keys, fiber) => {
      const { lease, identity } = this.#find(client, keys, fiber)
      if (lease !== undefined) return Effect.succeed(ownHold(identity, lease))
      const lost = lossAround(identity, { client, kind: this.kind, name: this.name, keys })
      return lost === undefined ? Effect.undefined : Effect.fail(lost)
    })
  }

  get inspect(): Effect.Effect<LockState, LockStoreError | Invalid> {
    return this.#with((client, keys) => inspect(client, keys, this.name))
  }

  get holders(): Effect.Effect<ReadonlyArray<HolderState>, LockStoreError | Invalid> {
    const { kind, name } = this
    return this.#with((client, keys) => holdersIn({ client, keys, kind, name }))
  }

  get holdCount(): Effect.Effect<number, Invalid> {
    return this.#with((client, keys, fiber) => Effect.succeed(this.#find(client, keys, fiber).lease?.holds ?? 0))
  }

  forceRelease(owners: ReadonlyArray<string> | undefined): Effect.Effect<boolean, LockStoreError | Invalid> {
    return this.#with((client, keys): Effect.Effect<boolean, LockStoreError | Invalid> => {
      if (client.isQuorum && this.kind.queued) return Effect.fail(noQuorum(this.kind))
      const wrong = checkOwners(owners)
      if (wrong !== undefined) return Effect.fail(wrong)
      return forceRelease(client, keys, this.kind, owners)
    })
  }

  #with<A, E2>(
    f: (client: LockClient, keys: LockKeys, fiber: Fiber<unknown, unknown>) => Effect.Effect<A, E2>
  ): Effect.Effect<A, E2 | Invalid> {
    return Effect.withFiber<A, E2 | Invalid>((fiber) => {
      const at = this.resolve(fiber)
      return isInvalid(at) ? Effect.fail(at) : f(at.client, at.keys, fiber)
    })
  }

  #find(
    client: LockClient,
    keys: LockKeys,
    fiber: Fiber<unknown, unknown>
  ): { readonly lease: Lease | undefined; readonly identity: Identity } {
    const scope = Context.getOrUndefined(fiber.context as Context.Context<Scope.Scope>, Scope.Scope)
    const identity = new Identity(fiber, scope)
    return { lease: client.leases.find(keys.lock, this.kind.mode, identity), identity }
  }
}

const checkOwners = (owners: unknown): InvalidLockOptions | undefined =>
  owners === undefined || (Array.isArray(owners) && owners.every((owner) => typeof owner === "string"))
    ? undefined
    : new InvalidLockOptions({
        option: "owners",
        problem: "it must be a list of owners, as in the holders of Lock.inspect"
      })

/**
 * Frees a lock that these owners hold or, if none are given, whoever holds it. Returns whether it was freed. Other processes learn of the loss
 * from the server, as of any other (`hold/Tracking.ts`). Run it at once.
 */
const forceRelease = (
  client: LockClient,
  keys: LockKeys,
  kind: LockProtocol,
  owners: ReadonlyArray<string> | undefined
): Effect.Effect<boolean, LockStoreError> => {
  // to the script, no owners means all
  if (owners?.length === 0) return Effect.succeed(false)
  const { mode, title } = kind
  const command = kind.forceRelease(keys, client.store.publish, owners ?? [])
  const sentAt = client.now()
  return Effect.map(runOrDescribe(client, title, command), (reply) => {
    if (reply < 1) return false
    for (const lease of client.leases.of(keys.lock)) {
      // a quorum's slowest member may answer long after a waiter of ours was granted what this has freed
      if (lease.askedAt > sentAt) continue
      if (owners?.includes(lease.owner) === false) continue
      // the writer's own read holds end with it
      if (lease.kind.mode === mode || mode === "write") lease.lose("NotOwner")
    }
    client.lines.wake(keys.lock)
    return true
  })
}

export const noQuorum = ({ title }: LockProtocol): InvalidLockOptions =>
  new InvalidLockOptions({
    option: title,
    problem: "a quorum of servers cannot keep it, as each would have a queue of its own; use a Lock, or one server"
  })

const checkTokens = (tokens: unknown): InvalidLockOptions | undefined =>
  tokens === undefined || tokens === "time" || tokens === "none"
    ? undefined
    : new InvalidLockOptions({ option: "tokens", problem: `${shown(tokens)} is neither "time" nor "none"` })

/** Makes a lock, along with the problem of its options if there is one. */
export const makeLock = <E, T>(
  name: string,
  kind: LockProtocol,
  options: (AcquireOptions & TokenOptions) | undefined,
  problem?: InvalidLockOptions
): AnyLock<RedisLock, E, T> => {
  const tokens = options?.tokens
  const lock = new LockImpl<RedisLock, E>(
    name,
    tokens === "none" ? { ...kind, hasTokens: false } : kind,
    options,
    undefined,
    checkName(name) ?? problem ?? checkTokens(tokens) ?? null
  )
  return lock as AnyLock<RedisLock, E, unknown> as AnyLock<RedisLock, E, T>
}

/** The given lock, or the lock of a name; any other value counts as an invalid name. */
export const lockOf = <R, E, T>(lock: PublicLock<R, E, T> | string): AnyLock<R, E, T> =>
  typeof lock === "object" && lock !== null && TypeId in lock
    ? (lock as AnyLock<R, E, T>)
    : (new LockImpl(lock as string, reentrant, undefined, undefined) as AnyLock<R, E, any>)

/** The body of a section inherits its holds, for re-entry, and has the lock's name on its log lines. */
export const locks: Family<InternalHolding> = {
  acquireSpan: "Lock.acquire",
  holdSpan: "Lock.hold",
  // a composed lock has a token for each member, and its span has none
  spanAttributes: ({ holds: [first], owner, token }) => ({
    "lock.owner": owner,
    ...(typeof token === "bigint" ? { "lock.token": String(token) } : undefined),
    ...(first === undefined ? undefined : labelled(first.lease.client))
  }),
  warn: ({ name, owner }, problems) =>
    Effect.annotateLogs(Effect.logWarning("The lock's scope has closed, but its release went wrong.", problems), {
      lock: name,
      owner
    }),
  inside: (context, { holds, name }, fiber) => {
    const { explicit, sections } = fiber.getRef(CurrentOwner)
    return Context.add(
      Context.add(context, CurrentOwner, new Owner(explicit, sectionsInside(holds, sections))),
      References.CurrentLogAnnotations,
      { ...fiber.getRef(References.CurrentLogAnnotations), lock: name }
    )
  }
}

/** The holding of a lock; the type of the lock says whether it has a token. */
type HeldLock<T> = InternalHolding<T> & HoldingOf<T>

/** A request for a lock, or for the lock of a name. */
export const prepareLock = <R, E, T>(
  lock: PublicLock<R, E, T> | string,
  options: AcquireOptions | undefined
): Prepare<HeldLock<T>, E> => {
  // of a name once, however often the effect is run
  const impl = lockOf(lock)
  return (fiber, scope) => impl.prepare(fiber, scope, options) as Prepared<HeldLock<T>, E> | Invalid
}

/** Runs `f` with a lock, without acquiring it. */
export const using = <A, E>(
  lock: PublicLock<unknown, unknown, unknown> | string,
  f: (lock: AnyLock<unknown, unknown, unknown>) => Effect.Effect<A, E>
): Effect.Effect<A, E> => Effect.suspend(() => f(lockOf(lock)))
