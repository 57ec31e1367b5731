/**
 * The types of composed locks. Checked by `tsc -b test`, which `pnpm test` runs first.
 */
import { expectTypeOf } from "@effect/vitest"
import { type Effect, type Layer, Schedule, type Scope } from "effect"
import {
  type AcquireError,
  type Holding,
  type InvalidLockOptions,
  Lock,
  type LockLost,
  type LockReentered,
  type LockTimeout,
  MultiLock,
  NonReentrantLock,
  type QuorumNotReached,
  ReadWriteLock,
  RedisLock,
  RedLock,
  SpinLock
} from "effect-redis-lock"
import { types } from "../kit/types.ts"

type Service = RedisLock.RedisLock
declare const service: Service["Service"]
declare const body: Effect.Effect<number, "mine", "needs">
declare const memberA: Layer.Layer<Service, "cannot connect", "settings">

/** How acquiring can fail where nothing limits the wait. */
type AskError = Exclude<AcquireError, LockTimeout>

types("a lock of several requires and fails with what its members do, and has a record of their tokens", () => {
  const unbound = MultiLock.make([Lock.make("a"), Lock.make("b")])
  expectTypeOf(unbound).toEqualTypeOf<Lock.Lock<Service, never, Readonly<Record<string, bigint>>>>()
  const bound = MultiLock.make([Lock.provide(Lock.make("a"), service)])
  expectTypeOf(bound).toEqualTypeOf<Lock.Lock<never, never, Readonly<Record<string, bigint>>>>()
  expectTypeOf(Lock.provide(unbound, service)).toEqualTypeOf<
    Lock.Lock<never, never, Readonly<Record<string, bigint>>>
  >()
  const mixed = MultiLock.make([Lock.make("a"), NonReentrantLock.make("b"), ReadWriteLock.make("c").writeLock])
  expectTypeOf(mixed).toEqualTypeOf<Lock.Lock<Service, LockReentered, Readonly<Record<string, bigint>>>>()
  expectTypeOf(Lock.scoped(mixed)).toEqualTypeOf<
    Effect.Effect<Holding<Readonly<Record<string, bigint>>>, AskError | LockReentered, Service | Scope.Scope>
  >()
  expectTypeOf(body.pipe(Lock.withLock(bound))).toEqualTypeOf<
    Effect.Effect<number, "mine" | AskError | LockLost, "needs">
  >()
  expectTypeOf(MultiLock.make(["a", "b"])).toEqualTypeOf<typeof unbound>()
  expectTypeOf(MultiLock.make(["a", Lock.provide(Lock.make("b"), service)])).toEqualTypeOf<typeof unbound>()
})

types("a lock on a majority can also find too few servers, and has one token", () => {
  const red = RedLock.make([Lock.provide(Lock.make("a"), service)], { memberTimeout: "1 second", leaseTime: 1000 })
  expectTypeOf(red).toEqualTypeOf<Lock.Lock<never, QuorumNotReached>>()
  expectTypeOf(Lock.scoped(red)).toEqualTypeOf<Effect.Effect<Holding, AskError | QuorumNotReached, Scope.Scope>>()
  // a quorum can be a member of several
  expectTypeOf(MultiLock.make([Lock.make("a"), red])).toEqualTypeOf<
    Lock.Lock<Service, QuorumNotReached, Readonly<Record<string, bigint>>>
  >()
  // several are no member of a quorum: what would a majority of halves be
  // @ts-expect-error
  RedLock.make([MultiLock.make([Lock.make("a")])])
  // a name says nothing of the server, and a majority of one server is that server
  // @ts-expect-error
  RedLock.make(["a"])
  // @ts-expect-error a delay is a duration
  RedLock.make([Lock.make("a")], { retryDelay: true })
})

/**
 * What any semaphore of this library looks like, whatever else it has: it has permits, and is no lock.
 */
interface SemaphoreLike {
  readonly name: string
  readonly permits: number
  readonly withPermits: (n: number) => <A, E, R>(self: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}
declare const semaphore: SemaphoreLike

types(
  "a composed lock can time out if it has a waitTime, or if a member's type says so: a SpinLock's schedule may end",
  () => {
    const member = SpinLock.make("a")
    const ending = SpinLock.make("a", { schedule: Schedule.recurs(3) })
    type Tokens = Readonly<Record<string, bigint>>
    expectTypeOf(MultiLock.make([member])).toEqualTypeOf<Lock.Lock<Service, never, Tokens>>()
    expectTypeOf(MultiLock.make(["b", ending])).toEqualTypeOf<Lock.Lock<Service, LockTimeout, Tokens>>()
    expectTypeOf(RedLock.make([ending])).toEqualTypeOf<Lock.Lock<Service, LockTimeout | QuorumNotReached>>()
    expectTypeOf(MultiLock.make([member], { waitTime: 1 })).toEqualTypeOf<Lock.Lock<Service, LockTimeout, Tokens>>()
    expectTypeOf(RedLock.make([member])).toEqualTypeOf<Lock.Lock<Service, QuorumNotReached>>()
    expectTypeOf(RedLock.make([member], { waitTime: 1 })).toEqualTypeOf<
      Lock.Lock<Service, LockTimeout | QuorumNotReached>
    >()
  }
)

types("a quorum of semaphores does not compile", () => {
  // Unsound: with 2 permits on each of 3 servers, {1, 2}, {2, 3} and {1, 3} are three majorities, each with a permit of two
  // servers, and all permits are taken once: three holders where two are allowed.
  // @ts-expect-error
  RedLock.make([semaphore, semaphore, semaphore])
  // @ts-expect-error
  MultiLock.make([semaphore])
})

types("the layer of a quorum is a layer of the service, with its members' failures and requirements", () => {
  expectTypeOf(RedisLock.layerQuorum([memberA, memberA])).toEqualTypeOf<
    Layer.Layer<Service, "cannot connect" | InvalidLockOptions, "settings">
  >()
  // @ts-expect-error an option of a lock, not of a quorum
  RedisLock.layerQuorum([memberA], { leaseTime: 1000 })
})
