/**
 * The store in memory: a driver whose server is a keyspace of this process, on Effect's `Clock`.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"
import { evalOf, makeError, type RedisDriver, type Reply, type Signal } from "../../../RedisDriver.ts"
import { monotonicMillis } from "../../time/clock.ts"
import { storeOver } from "../redis/RedisStore.ts"
import type { Store } from "../Store.ts"
import { globToRegExp, Keyspace } from "./Keyspace.ts"
import { loadScripts, type RunScript, toBytes, toText } from "./LuaScripts.ts"

/** Memory replies at once. */
const commandTimeoutMillis = 1000

export const makeMemoryStore: Effect.Effect<Store> = Effect.gen(function* () {
  const clock = yield* Clock.Clock
  const run = yield* loadScripts
  // a lease must not end early because the wall clock was set
  const now = monotonicMillis(clock)
  return storeOver(driverOf(new Keyspace(now, clock.currentTimeMillisUnsafe()), run), now)
})

const driverOf = (db: Keyspace, run: RunScript): RedisDriver["Service"] => ({
  eval: evalOn(db, run),
  subscribe: (channel) =>
    Stream.callback<Signal>((signals) =>
      Effect.acquireRelease(
        Effect.sync(() => {
          const stop = db.listen(toBytes(channel), (message) =>
            Queue.offerUnsafe(signals, { _tag: "Message", message: toText(message) })
          )
          Queue.offerUnsafe(signals, { _tag: "Subscribed" })
          return stop
        }),
        (stop) => Effect.sync(stop)
      )
    ),
  scan: (pattern, type) =>
    Stream.suspend(() => {
      const matches = globToRegExp(toBytes(pattern))
      return Stream.fromIterable(
        db.keys().flatMap((key) => (matches.test(key) && db.type(key) === type ? [toText(key)] : []))
      )
    }),
  publish: "PUBLISH",
  sharesSubscriptions: true,
  slot: () => 0,
  server: () => "",
  commandTimeoutMillis
})

/** Runs scripts as a server does. */
export const evalOn = (db: Keyspace, run: RunScript): RedisDriver["Service"]["eval"] =>
  evalOf((script, keys, args, onExit) => {
    let reply: Reply
    try {
      reply = run(db, script.lua, keys, args.map(String))
    } catch (cause) {
      onExit(Exit.fail(makeError(cause)))
      return answered
    }
    onExit(Exit.succeed(reply))
    return answered
  })

const answered = { cancel: () => {} }
