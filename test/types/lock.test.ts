/**
 * The types of the public API: error channels and requirements. Checked by `tsc -b test`, which `pnpm test` runs first.
 */
import { expectTypeOf } from "@effect/vitest"
import { Effect, Layer, type Option, pipe, Schedule, type Scope } from "effect"
import {
  type AcquireError,
  FairLock,
  FencedLock,
  type Holding,
  type HoldingWithoutToken,
  type InvalidLockName,
  type InvalidLockOptions,
  Lock,
  type LockLost,
  type LockReentered,
  type LockStoreError,
  type LockTimeout,
  MultiLock,
  NonReentrantLock,
  type NotLockOwner,
  type QuorumNotReached,
  ReadWriteLock,
  RedisLock,
  RedLock,
  SpinLock
} from "effect-redis-lock"
import { types } from "../kit/types.ts"

type Service = RedisLock.RedisLock
declare const body: Effect.Effect<number, "mine", "needs">
declare const free: Lock.Lock<never>
declare const service: Service["Service"]

/** How acquiring can fail where nothing limits the wait, or nobody waits. */
type AskError = LockStoreError | InvalidLockName | InvalidLockOptions

types("a lock is a value that requires the service, until one is bound", () => {
  expectTypeOf(Lock.make("a")).toEqualTypeOf<Lock.Lock<Service>>()
  expectTypeOf(Lock.provide(Lock.make("a"), service)).toEqualTypeOf<Lock.Lock<never>>()
  expectTypeOf(Lock.make("a").pipe(Lock.provide(service))).toEqualTypeOf<Lock.Lock<never>>()
  // @ts-expect-error a lock is no name
  Lock.make(Lock.make("a"))
})

types("a kind that its holder cannot take again says so, the others do not", () => {
  type Plain = Lock.Lock<Service, never>
  type Refusing = Lock.Lock<Service, LockReentered>
  expectTypeOf(FairLock.make("a")).toEqualTypeOf<Plain>()
  expectTypeOf(FencedLock.make("a")).toEqualTypeOf<Plain>()
  expectTypeOf(SpinLock.make("a")).toEqualTypeOf<Plain>()
  expectTypeOf(NonReentrantLock.make("a")).toEqualTypeOf<Refusing>()
  expectTypeOf(NonReentrantLock.make("a", { fair: true, leaseTime: 1 })).toEqualTypeOf<Refusing>()
  const { readLock, writeLock } = ReadWriteLock.make("a", { preference: "reader" })
  expectTypeOf(readLock).toEqualTypeOf<Plain>()
  expectTypeOf(writeLock).toEqualTypeOf<Refusing>()
  expectTypeOf(Lock.provide(writeLock, service)).toEqualTypeOf<Lock.Lock<never, LockReentered>>()
  expectTypeOf(writeLock.pipe(Lock.provide(service))).toEqualTypeOf<Lock.Lock<never, LockReentered>>()
  expectTypeOf(Lock.provide(readLock, service)).toEqualTypeOf<Lock.Lock<never>>()
  // @ts-expect-error what can be refused is no lock that cannot
  const _plain: Plain = writeLock
  // a lock that cannot be refused serves wherever one that can is expected
  const _refusing: Refusing = readLock
  return [_plain, _refusing]
})

types("a lock without fencing tokens says so, and its holding has none", () => {
  type Tokenless<E = never> = Lock.Lock<Service, E, undefined>
  const plain = Lock.make("a", { tokens: "none", leaseTime: 1000 })
  expectTypeOf(plain).toEqualTypeOf<Tokenless>()
  expectTypeOf(FairLock.make("a", { tokens: "none" })).toEqualTypeOf<Tokenless>()
  expectTypeOf(SpinLock.make("a", { tokens: "none" })).toEqualTypeOf<Tokenless>()
  expectTypeOf(NonReentrantLock.make("a", { tokens: "none" })).toEqualTypeOf<Tokenless<LockReentered>>()
  const { readLock, writeLock } = ReadWriteLock.make("a", { tokens: "none" })
  expectTypeOf(readLock).toEqualTypeOf<Tokenless>()
  expectTypeOf(writeLock).toEqualTypeOf<Tokenless<LockReentered>>()
  expectTypeOf(Lock.make("a", { tokens: "time" })).toEqualTypeOf<Lock.Lock<Service>>()
  expectTypeOf(Lock.scoped(plain)).toEqualTypeOf<Effect.Effect<HoldingWithoutToken, AskError, Service | Scope.Scope>>()
  expectTypeOf(Lock.tryScoped(plain)).toEqualTypeOf<
    Effect.Effect<
      Option.Option<HoldingWithoutToken>,
      LockStoreError | InvalidLockName | InvalidLockOptions,
      Service | Scope.Scope
    >
  >()
  expectTypeOf(Lock.currentHolding(plain)).toEqualTypeOf<
    Effect.Effect<HoldingWithoutToken, NotLockOwner | LockLost | InvalidLockName | InvalidLockOptions, Service>
  >()
  expectTypeOf<keyof HoldingWithoutToken | "token">().toEqualTypeOf<keyof Holding>()
  expectTypeOf(RedLock.make([Lock.provide(plain, service)])).toEqualTypeOf<
    Lock.Lock<never, QuorumNotReached, undefined>
  >()
  // @ts-expect-error there is no token
  Effect.map(Lock.currentHolding(plain), ({ token }) => token)
  // @ts-expect-error what has no tokens does not serve where they are needed
  const _tokens: Lock.Lock = plain
  // @ts-expect-error Java counts on them
  FencedLock.make("a", { tokens: "none" })
  // @ts-expect-error neither the one nor the other
  Lock.make("a", { tokens: "some" })
  // who may have turned them off cannot count on them
  const maybe: { tokens?: "none" } = {}
  expectTypeOf(Lock.make("a", maybe)).toEqualTypeOf<Lock.Lock<Service, never, undefined>>()
  const either: { tokens?: "time" | "none" } = {}
  expectTypeOf(Lock.make("a", either)).toEqualTypeOf<Lock.Lock<Service, never, bigint | undefined>>()
  return _tokens
})

types("LockReentered is among the failures of acquiring such a kind, and nowhere else", () => {
  const { readLock, writeLock } = ReadWriteLock.make("a")
  expectTypeOf(Lock.scoped(writeLock)).toEqualTypeOf<
    Effect.Effect<Holding, AskError | LockReentered, Service | Scope.Scope>
  >()
  expectTypeOf(Lock.tryScoped(writeLock)).toEqualTypeOf<
    Effect.Effect<
      Option.Option<Holding>,
      LockStoreError | InvalidLockName | InvalidLockOptions | LockReentered,
      Service | Scope.Scope
    >
  >()
  type Guarded<E> = Effect.Effect<number, "mine" | AskError | LockLost | E, "needs" | Service>
  expectTypeOf(body.pipe(Lock.withLock(writeLock))).toEqualTypeOf<Guarded<LockReentered>>()
  expectTypeOf(Lock.withLock(body, NonReentrantLock.make("a"))).toEqualTypeOf<Guarded<LockReentered>>()
  expectTypeOf(Lock.withLock(body, readLock)).toEqualTypeOf<Guarded<never>>()
  expectTypeOf(Lock.withLock(body, Lock.provide(writeLock, service))).toEqualTypeOf<
    Effect.Effect<number, "mine" | AskError | LockLost | LockReentered, "needs">
  >()
  expectTypeOf(Lock.withLockIfAvailable(body, writeLock)).toEqualTypeOf<
    Effect.Effect<
      Option.Option<number>,
      "mine" | LockStoreError | LockLost | InvalidLockName | InvalidLockOptions | LockReentered,
      "needs" | Service
    >
  >()
  expectTypeOf(Lock.isLocked(writeLock)).toEqualTypeOf<Effect.Effect<boolean, AskError, Service>>()
  expectTypeOf(Lock.forceRelease(writeLock)).toEqualTypeOf<Effect.Effect<boolean, AskError, Service>>()
})

types("scoped and tryScoped hold the lock for a scope, data-first and data-last", () => {
  type Scoped<E = never> = Effect.Effect<Holding, AskError | E, Service | Scope.Scope>
  expectTypeOf(Lock.scoped("a")).toEqualTypeOf<Scoped>()
  expectTypeOf(Lock.make("a").pipe(Lock.scoped)).toEqualTypeOf<Scoped>()
  expectTypeOf(Lock.scoped("a", { leaseTime: 1000 })).toEqualTypeOf<Scoped>()
  expectTypeOf(Lock.make("a").pipe(Lock.scoped({ leaseTime: 1000 }))).toEqualTypeOf<Scoped>()
  expectTypeOf(pipe("a", Lock.scoped({ leaseTime: 1000 }))).toEqualTypeOf<Scoped>()
  expectTypeOf(NonReentrantLock.make("a").pipe(Lock.scoped({}))).toEqualTypeOf<Scoped<LockReentered>>()
  expectTypeOf(Lock.scoped(free)).toEqualTypeOf<Effect.Effect<Holding, AskError, Scope.Scope>>()
  type TryScoped = Effect.Effect<Option.Option<Holding>, AskError, Service | Scope.Scope>
  expectTypeOf(Lock.tryScoped("a")).toEqualTypeOf<TryScoped>()
  expectTypeOf(Lock.make("a").pipe(Lock.tryScoped)).toEqualTypeOf<TryScoped>()
  expectTypeOf(Lock.make("a").pipe(Lock.tryScoped({ leaseTime: 1000 }))).toEqualTypeOf<TryScoped>()
  // @ts-expect-error not waiting has no waiting time
  Lock.tryScoped("a", { waitTime: 1 })
  // @ts-expect-error not in the other form either
  Lock.tryScoped({ waitTime: 1 })
})

types("LockTimeout is among the failures of waiting only where a waitTime limits the wait", () => {
  type Scoped<E> = Effect.Effect<Holding, AskError | E, Service | Scope.Scope>
  expectTypeOf(Lock.scoped("a", { waitTime: "1 second", leaseTime: 1000 })).toEqualTypeOf<Scoped<LockTimeout>>()
  expectTypeOf(Lock.make("a").pipe(Lock.scoped({ waitTime: 0 }))).toEqualTypeOf<Scoped<LockTimeout>>()
  expectTypeOf(Lock.scoped("a", { waitTime: undefined })).toEqualTypeOf<Scoped<never>>()
  const options: Lock.AcquireOptions = {}
  expectTypeOf(Lock.scoped("a", options)).toEqualTypeOf<Scoped<LockTimeout>>()
  expectTypeOf(Lock.make("a").pipe(Lock.scoped(options))).toEqualTypeOf<Scoped<LockTimeout>>()
  const maybe: { readonly waitTime?: number } = {}
  expectTypeOf(Lock.scoped("a", maybe)).toEqualTypeOf<Scoped<LockTimeout>>()
  expectTypeOf(Lock.make("a").pipe(Lock.scoped(maybe))).toEqualTypeOf<Scoped<LockTimeout>>()

  type Guarded<E> = Effect.Effect<number, "mine" | AskError | LockLost | E, "needs" | Service>
  expectTypeOf(Lock.withLock(body, "a", { waitTime: "1 second" })).toEqualTypeOf<Guarded<LockTimeout>>()
  expectTypeOf(body.pipe(Lock.withLock("a", { waitTime: "1 second" }))).toEqualTypeOf<Guarded<LockTimeout>>()
  expectTypeOf(body.pipe(Lock.withLock("a", options))).toEqualTypeOf<Guarded<LockTimeout>>()
  expectTypeOf(body.pipe(Lock.withLock("a", { leaseTime: 1000 }))).toEqualTypeOf<Guarded<never>>()
  expectTypeOf<AcquireError>().toEqualTypeOf<AskError | LockTimeout>()
})

types("a lock whose own options limit the wait can time out wherever it is waited for, and says so", () => {
  type Limited<E = never, T = bigint> = Lock.Lock<Service, LockTimeout | E, T>
  const limited = Lock.make("a", { waitTime: "1 second" })
  expectTypeOf(limited).toEqualTypeOf<Limited>()
  expectTypeOf(Lock.make("a", { waitTime: 1, tokens: "none" })).toEqualTypeOf<Limited<never, undefined>>()
  expectTypeOf(FairLock.make("a", { waitTime: 1 })).toEqualTypeOf<Limited>()
  expectTypeOf(FencedLock.make("a", { waitTime: 1 })).toEqualTypeOf<Limited>()
  expectTypeOf(NonReentrantLock.make("a", { waitTime: 1, fair: true })).toEqualTypeOf<Limited<LockReentered>>()
  expectTypeOf(ReadWriteLock.make("a", { waitTime: 1 }).readLock).toEqualTypeOf<Limited>()
  expectTypeOf(ReadWriteLock.make("a", { waitTime: 1 }).writeLock).toEqualTypeOf<Limited<LockReentered>>()
  expectTypeOf(SpinLock.make("a", { waitTime: 1 })).toEqualTypeOf<Limited>()
  // a schedule may end, and the wait with it
  expectTypeOf(SpinLock.make("a", { schedule: Schedule.recurs(2) })).toEqualTypeOf<Limited>()

  expectTypeOf(Lock.scoped(limited)).toEqualTypeOf<Effect.Effect<Holding, AcquireError, Service | Scope.Scope>>()
  expectTypeOf(body.pipe(Lock.withLock(limited))).toEqualTypeOf<
    Effect.Effect<number, "mine" | AcquireError | LockLost, "needs" | Service>
  >()
  // who does not wait does not time out
  expectTypeOf(Lock.tryScoped(limited)).toEqualTypeOf<
    Effect.Effect<Option.Option<Holding>, AskError, Service | Scope.Scope>
  >()
  expectTypeOf(body.pipe(Lock.withLockIfAvailable(limited))).toEqualTypeOf<
    Effect.Effect<Option.Option<number>, "mine" | AskError | LockLost, "needs" | Service>
  >()
  // @ts-expect-error what can time out is no lock that cannot
  const _unlimited: Lock.Lock = limited
  return _unlimited
})

types("withLock adds LockLost to what the section and acquiring fail with, data-first and data-last", () => {
  type Guarded = Effect.Effect<number, "mine" | AskError | LockLost, "needs" | Service>
  expectTypeOf(Lock.withLock("a")(body)).toEqualTypeOf<Guarded>()
  expectTypeOf(body.pipe(Lock.withLock("a"))).toEqualTypeOf<Guarded>()
  expectTypeOf(Lock.withLock(body, "a", { leaseTime: 1 })).toEqualTypeOf<Guarded>()
  expectTypeOf(Lock.withLock(body, free)).toEqualTypeOf<Effect.Effect<number, "mine" | AskError | LockLost, "needs">>()
})

types("a name requires the service, whatever is expected of the result", () => {
  // @ts-expect-error the layer is missing
  void Effect.runPromise(Lock.withLock(Effect.void, "a"))
  // @ts-expect-error the layer is missing
  void Effect.runPromise(Effect.void.pipe(Lock.withLock("a")))
  // @ts-expect-error the layer is missing
  void Effect.runPromise(Lock.isLocked("a"))
  // @ts-expect-error the layer is missing
  void Effect.runPromise(Effect.scoped(Lock.scoped("a")))
  // @ts-expect-error its token is a bigint
  const _holding: Effect.Effect<Holding<string>, unknown, unknown> = Lock.scoped("a")
  return _holding
})

types("withLockIfAvailable cannot time out", () => {
  type Guarded = Effect.Effect<
    Option.Option<number>,
    "mine" | LockStoreError | LockLost | InvalidLockName | InvalidLockOptions,
    "needs" | Service
  >
  expectTypeOf(body.pipe(Lock.withLockIfAvailable("a"))).toEqualTypeOf<Guarded>()
  expectTypeOf(Lock.withLockIfAvailable(body, "a", { leaseTime: 1 })).toEqualTypeOf<Guarded>()
})

types("orDieIfInvalid leaves no invalid name or option among the failures", () => {
  expectTypeOf(body.pipe(Lock.withLock("a", { waitTime: 1 }), Lock.orDieIfInvalid)).toEqualTypeOf<
    Effect.Effect<number, "mine" | LockTimeout | LockStoreError | LockLost, "needs" | Service>
  >()
  expectTypeOf(Lock.orDieIfInvalid(Lock.scoped("a"))).toEqualTypeOf<
    Effect.Effect<Holding, LockStoreError, Service | Scope.Scope>
  >()
})

types("options that could only fail do not compile where the kind of lock is known", () => {
  const acknowledge = { replicas: 1 }
  Lock.make("a", { minHold: 1, acknowledge })
  FairLock.make("a", { minHold: 1, acknowledge })
  SpinLock.make("a", { minHold: 1, acknowledge })
  NonReentrantLock.make("a", { minHold: 1, acknowledge })
  ReadWriteLock.make("a", { acknowledge })
  // @ts-expect-error a reader or a writer cannot stay
  ReadWriteLock.make("a", { minHold: 1 })
  MultiLock.make(["a", "b"], { acknowledge })
  // @ts-expect-error several locks cannot stay
  MultiLock.make(["a", "b"], { minHold: 1 })
  // @ts-expect-error a majority cannot keep it
  RedLock.make([free], { minHold: 1 })
  // @ts-expect-error its servers acknowledge as their own layers say
  RedLock.make([free], { acknowledge })
})

types("only the layers make a RedisLock service", () => {
  expectTypeOf<Service["Service"]["clientId"]>().toEqualTypeOf<string>()
  // @ts-expect-error the client is missing
  Layer.succeed(RedisLock.RedisLock, { clientId: "a" })
  // @ts-expect-error what is there is no client
  Layer.succeed(RedisLock.RedisLock, { clientId: "a", "~effect-redis-lock/RedisLock": {} })
  // @ts-expect-error the client is missing
  Lock.provide(Lock.make("a"), { clientId: "a" })
})
