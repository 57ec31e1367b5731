/**
 * The sections that a process has in a row: the lock is not free between two of them, however late the request of its next waiter comes.
 */
import { assert } from "@effect/vitest"
import { Deferred, Effect, Fiber, Option } from "effect"
import { FencedLock, Lock, MultiLock, NonReentrantLock, ReadWriteLock, type RedisLock } from "effect-redis-lock"
import { background } from "../kit/background.ts"
import { soon } from "../kit/eventually.ts"
import { freshName } from "../kit/names.ts"
import { sectionUntilTold } from "../kit/sections.ts"
import { runOperation } from "../kit/storeOperations.ts"
import { stores } from "../kit/stores.ts"
import { testLive } from "../kit/test.ts"
import { as, clientOf, storeOf } from "../kit/testStore.ts"
import { type Request, type Store, wrappedStore } from "../kit/wrappedStore.ts"

type AnyLock = Lock.Lock<RedisLock.RedisLock, any, any>

/** A lock, and what is held while its next waiter comes. */
const kinds: Readonly<Record<string, (name: string) => { readonly lock: AnyLock; readonly held?: AnyLock }>> = {
  Lock: (name) => ({ lock: Lock.make(name) }),
  FencedLock: (name) => ({ lock: FencedLock.make(name) }),
  NonReentrantLock: (name) => ({ lock: NonReentrantLock.make(name) }),
  writeLock: (name) => ({ lock: ReadWriteLock.make(name).writeLock }),
  "Lock that is a member of a MultiLock": (name) => ({
    lock: Lock.make(name),
    held: MultiLock.make([name, freshName("ownTurns")])
  })
}

/** A release that was sent, and whether it has been answered. */
interface SentRelease extends Pick<Request, "keys" | "args"> {
  readonly answered: Deferred.Deferred<void>
}

/** The owner that a release leaves a lock to: what stands in the place of the command that tells others. */
const leftTo = (name: string, { args, keys }: SentRelease, isOfSeveral: boolean): string => {
  const owner = String(args[isOfSeveral ? 3 + keys.indexOf(name) / 4 : 1])
  assert.match(owner, /^[-0-9a-f]{36}:\d+$/, "the release leaves the lock to no owner")
  return owner
}

/** The fields of a lock, among which are its holders. */
const fieldsOf = (store: Store, name: string) =>
  Effect.map(runOperation(store, "lock/inspect", [name, `token:{${name}}`]), (found) =>
    (found as readonly [left: number, token: unknown, fields: ReadonlyArray<string>])[2].map(String)
  )

/**
 * A process with a section, and a fiber that waits for its end; the request of that is held back until `mayAsk`. `end` ends the section and
 * returns when the release has been answered; what it is given is called when the release has been sent, before the waiting fiber has run.
 */
const handedOver = Effect.fnUntraced(function* (store: Store, lock: AnyLock, held: AnyLock) {
  const [released, mayAsk] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
  let isHeld = false
  const releases: Array<SentRelease> = []
  let onSent = () => {}
  const slow = wrappedStore(store, ({ args, keys, operation, run }) => {
    if (operation.endsWith("/release")) {
      const answered = releases.length === 0 ? released : Deferred.makeUnsafe<void>()
      releases.push({ keys, args, answered })
      if (answered !== released) return Effect.ensuring(run(), Deferred.succeed(answered, undefined))
      return Effect.forkChild(run(), { startImmediately: true }).pipe(
        Effect.tap(() => Effect.sync(onSent)),
        Effect.flatMap(Fiber.join),
        Effect.ensuring(Deferred.succeed(released, undefined))
      )
    }
    return isHeld && operation.endsWith("/acquire") ? Effect.andThen(Deferred.await(mayAsk), run()) : run()
  })
  const service = yield* clientOf({ store: slow }, { label: "" })
  const first = yield* sectionUntilTold((body) => as(service)(Lock.withLock(body, held)))
  isHeld = true
  const next = yield* Effect.succeed("served").pipe(Lock.withLock(lock), as(service), background)
  const end = Effect.fnUntraced(function* (whenSent = () => {}) {
    onSent = whenSent
    yield* first.end
    yield* Deferred.await(released)
  })
  return { end, mayAsk: Deferred.succeed(mayAsk, undefined), next, releases }
})

for (const [where, layer] of Object.entries(stores)) {
  for (const [title, lockOf] of Object.entries(kinds)) {
    const setUp = Effect.gen(function* () {
      const store = yield* storeOf(layer)
      const { held, lock } = lockOf(freshName("ownTurns"))
      const other = yield* clientOf({ store }, { label: "" })
      return { ...(yield* handedOver(store, lock, held ?? lock)), lock, other, store, isOfSeveral: held !== undefined }
    })

    testLive(
      `${where}: no request of another process comes between two sections of one process: ${title}`,
      function* () {
        const { end, lock, mayAsk, next, other } = yield* setUp
        yield* end()
        const entered = yield* Effect.void.pipe(Lock.withLockIfAvailable(lock), as(other))
        assert.isTrue(Option.isNone(entered), "the lock is free between two sections")
        yield* mayAsk
        assert.strictEqual(yield* Fiber.join(next), "served")
      }
    )

    testLive(
      `${where}: a waiter that leaves before its process has asked gives the lock to another process: ${title}`,
      function* () {
        const { end, isOfSeveral, lock, next, other, releases, store } = yield* setUp
        const waiter = yield* Effect.succeed("served").pipe(Lock.withLock(lock), as(other), background)
        yield* end(() => next.interruptUnsafe())
        yield* Fiber.await(next)
        const owner = leftTo(lock.name, releases[0]!, isOfSeveral)
        // what the process keeps for nobody would free itself as well, only later
        const givenBack = releases.slice(1).find(({ args }) => args[0] === owner)
        assert.isDefined(givenBack, "the lock is not given back")
        yield* soon("the release is answered", Deferred.await(givenBack.answered))
        assert.isFalse((yield* fieldsOf(store, lock.name)).some((field) => field.startsWith(owner)))
        assert.strictEqual(yield* Fiber.join(waiter), "served")
      }
    )
  }
}
