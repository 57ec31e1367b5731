/**
 * What an answered command still refers to. ioredis' record of it, an array of it, or a table of a Map may live on in the old
 * generation of V8's heap; everything that it leads to would then live until the next full collection.
 */
import { assert } from "@effect/vitest"
import { Effect, Exit } from "effect"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { type Member, type Outcome, QuorumCall } from "../../packages/core/dist/internal/store/quorum/QuorumCall.js"
import { AlarmClock } from "../../packages/core/dist/internal/time/clock.js"
import { FastCommand } from "../../packages/ioredis/dist/internal/fast/FastCommand.js"
import { operations } from "../kit/operations.ts"
import { startable } from "../kit/startable.ts"
import { test } from "../kit/test.ts"

setFlagsFromString("--expose-gc")
const collect = runInNewContext("gc") as () => void

const nextTurn = Effect.callback<void>((resume) => {
  setImmediate(() => resume(Effect.void))
})

/** Whether something is collected; a WeakRef keeps it until the turn in which it was made has ended. */
const isCollected = (ref: WeakRef<object>): Effect.Effect<boolean> =>
  Effect.map(nextTurn, () => {
    collect()
    return ref.deref() === undefined
  })

const script = { name: "one", lua: "return 1", sha1: "e0e1f9fabfc9d4800c877a703b823ac0578ff8db" }

/** A command as ioredis keeps it, and its caller. */
const sent = () => {
  const replies: Array<unknown> = []
  const onReply = (reply: unknown) => void replies.push(reply)
  const caller = { script, keys: ["a"], args: [1], sendsText: false, onReply, onError: onReply, expire: () => {} }
  return { command: new FastCommand(caller), caller: new WeakRef(caller), replies }
}

/** A call to three members, which is decided by the second reply. */
const called = () => {
  const replies: Array<(outcome: Outcome<number>) => void> = []
  const requests: Array<WeakRef<object>> = []
  const client = {
    run: () =>
      startable((onExit: (outcome: Outcome<number>) => void) => {
        replies.push(onExit)
        const request = { cancel: () => {} }
        requests.push(new WeakRef(request))
        return request
      })
  }
  const members = ["a", "b", "c"].map((label) => ({ label, client, keyOf: undefined }) as unknown as Member)
  const conclusions: Array<unknown> = []
  const call = new QuorumCall<number>(
    members,
    new AlarmClock(
      () => 0,
      () => {}
    ),
    {
      command: { operation: operations["lock/release"], keys: ["a"], args: [] } as never,
      timeoutMillis: 1000,
      conclude: (outcomes) =>
        outcomes.filter((outcome) => outcome !== undefined).length >= 2 ? Exit.succeed(1) : undefined,
      onSettled: () => {}
    },
    (conclusion) => void conclusions.push(conclusion)
  )
  return { call, conclusions, replies, requests }
}

for (const answer of ["reply", "error"] as const) {
  test(`A command that ioredis still refers to after an ${answer === "reply" ? "answer" : "error"} does not keep its caller`, function* () {
    const { caller, command, replies } = sent()
    assert.isFalse(yield* isCollected(caller), "while it is awaited")
    if (answer === "reply") command.resolve(1)
    else command.reject(new Error("ERR"))
    assert.isTrue(yield* isCollected(caller))
    assert.strictEqual(replies.length, 1)
    command.resolve(2)
    assert.strictEqual(replies.length, 1, "answered once")
    assert.deepStrictEqual(command.args, [])
  })
}

test("A quorum's call that every member has answered keeps none of its requests", function* () {
  const { call, conclusions, replies, requests } = called()
  call.start(0)
  assert.isFalse(yield* isCollected(requests[0]!), "while it is awaited")
  for (const reply of replies.splice(0)) reply(Exit.succeed(1))
  assert.deepStrictEqual(conclusions, [Exit.succeed(1)])
  for (const request of requests) assert.isTrue(yield* isCollected(request))
  assert.isTrue(call.isSettled)
})

test("A quorum's call that was abandoned after its decision keeps none of its requests", function* () {
  const { call, conclusions, replies, requests } = called()
  call.start(0)
  const [first, second] = replies.splice(0)
  first!(Exit.succeed(1))
  second!(Exit.succeed(1))
  assert.deepStrictEqual(conclusions, [Exit.succeed(1)])
  assert.isFalse(yield* isCollected(requests[2]!), "the third may still answer")
  call.abandon()
  for (const request of requests) assert.isTrue(yield* isCollected(request))
})
