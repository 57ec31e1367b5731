/**
 * What the tests of composed locks share: stores in memory that can be watched, made to fail or to be late, and clients of
 * them.
 */
import { Clock, Context, Effect, Layer, type Scope, Stream } from "effect"
import { LockStore, RedisLock, type StoreReason } from "effect-redis-lock"
import { runOperation, typeOfKeyIn } from "./storeOperations.ts"
import { type Store, unreachable, wrappedStore } from "./wrappedStore.ts"

export type Service = RedisLock.RedisLock["Service"]

/** A store in memory, and what a test may do to it. */
export interface TestStore {
  readonly store: Store
  /** Every operation that reached it, in order. */
  readonly operations: Array<LockStore.Operation>
  /** The keys of each operation. */
  readonly keys: Array<ReadonlyArray<string>>
  /** The arguments of each operation. */
  readonly args: Array<ReadonlyArray<string | number>>
  /** Whether it cannot be reached: nothing is run. */
  isDown: boolean
  /** Operations that fail, as if the server could not be reached. */
  refuses: (operation: LockStore.Operation) => boolean
  /** How they fail. */
  reason: StoreReason
  /** After how many milliseconds they do. */
  failsAfter: number
  /** How often it was asked, also in vain. */
  asked: number
  /** How long an operation is on its way, milliseconds. */
  delay: (operation: LockStore.Operation) => number
  /** Frees a lock behind everybody's back. */
  readonly delete: (name: string) => Effect.Effect<void>
  readonly isFree: (name: string) => Effect.Effect<boolean>
}

/** A store of its own. */
export const storeOf = <E>(layer: Layer.Layer<LockStore.LockStore, E>): Effect.Effect<Store, never, Scope.Scope> =>
  Effect.map(Layer.build(Layer.fresh(Layer.orDie(layer))), (context) => Context.get(context, LockStore.LockStore))

/** An empty store in memory whose clock is ahead of that of the test by so many milliseconds. */
export const memoryStore = Effect.fnUntraced(function* (skewMillis: number) {
  const clock = yield* Clock.Clock
  const skewed: Clock.Clock = Object.create(clock, {
    currentTimeMillisUnsafe: { value: () => clock.currentTimeMillisUnsafe() + skewMillis }
  })
  return yield* Effect.provideService(storeOf(LockStore.layerMemory), Clock.Clock, skewed)
})

/** The same, to be watched. */
export const testStore = Effect.fnUntraced(function* (skewMillis = 0) {
  const inner = yield* memoryStore(skewMillis)
  const self: TestStore = {
    operations: [],
    keys: [],
    args: [],
    isDown: false,
    refuses: () => false,
    reason: "NotConnected",
    failsAfter: 0,
    asked: 0,
    delay: () => 0,
    delete: (name) =>
      Effect.asVoid(Effect.orDie(runOperation(inner, "lock/force_release", [name, `silent:${name}`], ["PUBLISH"]))),
    isFree: (name) => Effect.map(Effect.orDie(typeOfKeyIn(inner, name)), (type) => type === "none"),
    store: {
      ...wrappedStore(inner, (request) =>
        Effect.suspend(() => {
          const lateMillis = self.delay(request.operation)
          const run = Effect.suspend(() => {
            self.operations.push(request.operation)
            self.keys.push(request.keys)
            self.args.push(request.args)
            return request.run()
          })
          self.asked++
          if (self.isDown || self.refuses(request.operation)) {
            const fail = request.fail(self.isDown ? "NotConnected" : self.reason)
            return self.failsAfter === 0 ? fail : Effect.andThen(Effect.sleep(self.failsAfter), fail)
          }
          return lateMillis === 0 ? run : Effect.andThen(Effect.sleep(lateMillis), run)
        })
      ),
      scan: (pattern, type) =>
        Stream.suspend(() => (self.isDown ? Stream.fail(unreachable("scan", pattern)) : inner.scan(pattern, type))),
      subscribe: (channel) =>
        Stream.suspend(() => (self.isDown ? Stream.fail(unreachable("subscribe", channel)) : inner.subscribe(channel)))
    }
  }
  return self
})

export const testStores = (count: number) => Effect.forEach(Array.from({ length: count }), () => testStore())

/** A client of its own. */
export const serviceOf = <E>(layer: Layer.Layer<RedisLock.RedisLock, E>): Effect.Effect<Service, never, Scope.Scope> =>
  Effect.map(Layer.build(Layer.fresh(Layer.orDie(layer))), (context) => Context.get(context, RedisLock.RedisLock))

/** A client of a store. */
export const clientOf = ({ store }: Pick<TestStore, "store">, options?: RedisLock.RedisLockOptions) =>
  serviceOf(clientLayer(store, options))

/** A store, and a client of it with each of these options. */
export const storeWith = <const All extends ReadonlyArray<RedisLock.RedisLockOptions>>(
  ...options: All
): Effect.Effect<readonly [TestStore, ...{ [K in keyof All]: Service }], never, Scope.Scope> =>
  Effect.gen(function* () {
    const server = yield* testStore()
    return [server, ...(yield* Effect.forEach(options, (each) => clientOf(server, each)))] as never
  })

export const clientLayer = (store: Store, options?: RedisLock.RedisLockOptions) =>
  RedisLock.layerFromStore(options).pipe(Layer.provide(Layer.succeed(LockStore.LockStore, store)), Layer.orDie)

/** A client whose locks a majority of these stores keeps. */
export const quorumOf = (
  stores: ReadonlyArray<Pick<TestStore, "store">>,
  options?: RedisLock.RedisLockOptions,
  quorum?: Parameters<typeof RedisLock.layerQuorum>[1]
) =>
  serviceOf(
    RedisLock.layerQuorum(
      stores.map(({ store }) => clientLayer(store, options)),
      quorum
    )
  )

/** Runs an effect as that client. */
export const as =
  (service: Service) =>
  <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, Exclude<R, RedisLock.RedisLock>> =>
    Effect.provideService(self, RedisLock.RedisLock, service)
