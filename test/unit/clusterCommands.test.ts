/**
 * What becomes of a cluster's commands while slots move: nodes that answer what a test wants stand for ioredis.
 */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { EventEmitter } from "node:events"
import { ClusterScriptCommand } from "../../packages/ioredis/dist/internal/command/ClusterScriptCommand.js"
import { Subscriber } from "../../packages/ioredis/dist/internal/subscriber.js"
import { until } from "../kit/eventually.ts"
import { testLive } from "../kit/test.ts"

const nextTurn = Effect.callback<void>((resume) => {
  setImmediate(() => resume(Effect.void))
})

const script = { name: "one", lua: "return 1", sha1: "e0e1f9fabfc9d4800c877a703b823ac0578ff8db" }

testLive("A command whose slot is being moved is not sent again once its caller has gone", function* () {
  const sent: Array<string> = []
  const writer = {
    client: { status: "ready" },
    answered: () => {},
    mayKnow: () => true,
    send: (command: ClusterScriptCommand) => {
      sent.push(command.keys[0]!)
      return { disarm: () => {} }
    }
  }
  const target = {
    nodes: { ownerOf: () => writer },
    pending: { timeoutMillis: 1000, add: () => {}, remove: () => {} }
  } as never
  const [gone] = ["gone", "waiting"].map((key) => {
    const command = new ClusterScriptCommand(target, script, [key], [], () => {})
    command.route()
    command.onError(new Error("TRYAGAIN Multiple keys request during rehashing of slot"))
    return command
  })
  gone!.cancel()
  // both after the same pause, this one first
  yield* until("the other one is sent again", () => sent.length > 2)
  assert.deepStrictEqual(sent, ["gone", "waiting", "waiting"])
})

testLive(
  "The pause before a channel is subscribed again is short each time that slots move, and grows only until then",
  function* () {
    const client = Object.assign(new EventEmitter(), {
      status: "ready",
      ssubscribe: async () => 1,
      disconnect: () => {}
    })
    const link = {
      client,
      expectAnswer: () => {},
      answered: () => {},
      close: () => {},
      connection: { close: () => {} }
    }
    let lookUps = 0
    const subscriber = yield* Effect.acquireRelease(
      Effect.sync(
        () =>
          new Subscriber({
            sharded: true,
            serverOf: () => (++lookUps > 2 ? "a" : undefined),
            open: () => link as never,
            refresh: () => {}
          })
      ),
      (subscriber) => Effect.sync(() => subscriber.close())
    )
    let subscriptions = 0
    subscriber.subscribe(
      "channel",
      () => void subscriptions++,
      () => {}
    )
    // after 100 ms and 200 ms more
    yield* until("it is subscribed", () => subscriptions === 1)
    client.emit("moved")
    // timers ring in the order of their times, on a slow machine as well; the request follows in the same turn
    yield* Effect.sleep("250 millis")
    yield* nextTurn
    assert.strictEqual(subscriptions, 2)
  }
)
