import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"
import { LockStoreError } from "../../../LockError.ts"
import { reasonOf, type Reply, type Signal } from "../../../RedisDriver.ts"
import { monotonicMillis } from "../../time/monotonicMillis.ts"
import { CommandDeadlines } from "../CommandDeadlines.ts"
import type { OperationName } from "../operations/StoreOperation.ts"
import { scripts } from "../redis/scripts.generated.ts"
import { type Execute, withDeadlines } from "../withDeadlines.ts"
import { startable } from "../startable.ts"
import type { Store } from "../Store.ts"
import { globToRegExp } from "./keyspace/glob.ts"
import { Keyspace } from "./keyspace/Keyspace.ts"
import type { MemoryOperation } from "./MemoryOperation.ts"
import * as grant from "./grant.ts"
import * as latch from "./counters/latch.ts"
import * as lock from "./lock.ts"
import * as permitSemaphore from "./counters/permitSemaphore.ts"
import * as semaphore from "./counters/semaphore.ts"
import * as client from "./client.ts"
import * as fairLock from "./fairLock.ts"
import * as multiLock from "./multiLock.ts"
import * as readWriteLock from "./readWriteLock.ts"
import * as record from "./record.ts"

const operations: Record<OperationName, MemoryOperation> = {
  "latch/count": latch.count,
  "client/label": client.label,
  "client/set_label": client.setLabel,
  "client/tell": client.tell,
  "latch/count_down": latch.countDown,
  "latch/delete": latch.remove,
  "latch/set": latch.set,
  "fair_lock/acquire": fairLock.acquire,
  "fair_lock/force_release": fairLock.forceRelease,
  "fair_lock/refresh": fairLock.refresh,
  "fair_lock/release": fairLock.release,
  "fenced_lock/acquire": lock.acquireFenced,
  "grant/confirm": grant.confirm,
  "lock/acquire": lock.acquire,
  "lock/force_release": lock.forceRelease,
  "lock/found": lock.found,
  "lock/hold": lock.hold,
  "lock/inspect": lock.inspect,
  "lock/keep": lock.keep,
  "lock/look": lock.look,
  "lock/raise_token": lock.raiseToken,
  "lock/release": lock.release,
  "lock/renew": lock.renew,
  "permit_semaphore/acquire": permitSemaphore.acquire,
  "permit_semaphore/add": permitSemaphore.add,
  "permit_semaphore/count": permitSemaphore.count,
  "permit_semaphore/lease": permitSemaphore.lease,
  "permit_semaphore/release": permitSemaphore.release,
  "permit_semaphore/renew": permitSemaphore.renew,
  "permit_semaphore/set": permitSemaphore.set,
  "permit_semaphore/try_release": permitSemaphore.tryRelease,
  "permit_semaphore/update_lease": permitSemaphore.updateLease,
  "semaphore/acquire": semaphore.acquire,
  "semaphore/add": semaphore.add,
  "semaphore/available": semaphore.available,
  "semaphore/drain": semaphore.drain,
  "semaphore/leave": semaphore.leave,
  "semaphore/return": semaphore.giveBack,
  "semaphore/set": semaphore.set,
  "multi_lock/acquire": multiLock.acquire,
  "multi_lock/release": multiLock.release,
  "read_lock/acquire": readWriteLock.acquireRead,
  "read_lock/force_release": readWriteLock.forceReleaseRead,
  "read_lock/hold": readWriteLock.holdRead,
  "read_lock/release": readWriteLock.releaseRead,
  "read_lock/remove_hold": readWriteLock.removeReadHold,
  "read_lock/renew": readWriteLock.renewRead,
  "record/clear": record.clear,
  "record/read": record.read,
  "record/write": record.write,
  "write_lock/acquire": readWriteLock.acquireWrite,
  "write_lock/force_release": readWriteLock.forceReleaseWrite,
  "write_lock/release": readWriteLock.releaseWrite,
  "write_lock/withdraw": readWriteLock.withdraw
}

/** Memory replies at once. */
const commandLifeMillis = 1000

/** Runs operations as a server runs the scripts, including their deadlines. */
export const executeOn =
  (db: Keyspace): Execute<LockStoreError> =>
  (operation, keys, args) =>
    startable((onExit) => {
      onExit(execute(db, operation, keys, args))
      return { cancel: () => {} }
    })

const execute = (
  db: Keyspace,
  operation: OperationName,
  keys: ReadonlyArray<string>,
  args: ReadonlyArray<string | number>
): Exit.Exit<Reply, LockStoreError> => {
  try {
    if (!scripts[operation].hasDeadline) return Exit.succeed(operations[operation](db, keys, args.map(String)))
    // `lua/include/deadline.lua`
    if (db.timeMicros() > Number(args.at(-1)) * 1000) throw new Error(`LATE ${db.timeMicros()}`)
    return Exit.succeed(operations[operation](db, keys, args.slice(0, -1).map(String)))
  } catch (cause) {
    return Exit.fail(new LockStoreError({ operation, lock: keys[0]!, reason: reasonOf(cause), cause }))
  }
}

export const makeMemoryStore: Effect.Effect<Store> = Effect.map(Clock.Clock, (clock) => {
  const now = monotonicMillis(clock)
  // a lease must not end early because the wall clock was set
  const db = new Keyspace(now, clock.currentTimeMillisUnsafe())
  const deadlines = new CommandDeadlines(commandLifeMillis, now, () => "")

  return {
    run: withDeadlines(deadlines, executeOn(db), (error) => error),
    subscribe: (channel) =>
      Stream.callback<Signal>((signals) =>
        Effect.acquireRelease(
          Effect.sync(() => {
            const stop = db.listen(channel, (message) => Queue.offerUnsafe(signals, { _tag: "Message", message }))
            Queue.offerUnsafe(signals, { _tag: "Subscribed" })
            return stop
          }),
          (stop) => Effect.sync(stop)
        )
      ),
    scan: (pattern, type) =>
      Stream.suspend(() => {
        const matches = globToRegExp(pattern)
        return Stream.fromIterable(db.keys().filter((key) => matches.test(key) && db.type(key) === type))
      }),
    publish: "PUBLISH",
    slot: () => 0,
    commandLifeMillis,
    commandTimeoutMillis: commandLifeMillis,
    serverMicros: () => deadlines.serverMicros(""),
    handsOver: true
  }
})
