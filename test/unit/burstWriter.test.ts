/**
 * When commands are written: a client that notes it stands for ioredis.
 */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import type { Command, Redis } from "ioredis"
import { EventEmitter } from "node:events"
import { BurstWriter } from "../../packages/ioredis/dist/internal/fast/BurstWriter.js"
import { test } from "../kit/test.ts"

class NotingClient extends EventEmitter {
  readonly log: Array<string> = []
  readonly stream = { cork: () => this.log.push("cork"), uncork: () => this.log.push("uncork") }
  sendCommand = () => this.log.push("write")
}

const nextTurn = Effect.callback<void>((resume) => {
  setImmediate(() => resume(Effect.void))
})

/** The log with what repeats counted. */
const counted = (log: ReadonlyArray<string>): ReadonlyArray<string> => {
  const runs: Array<{ readonly entry: string; times: number }> = []
  for (const entry of log) {
    const last = runs.at(-1)
    if (last?.entry === entry) last.times++
    else runs.push({ entry, times: 1 })
  }
  return runs.map(({ entry, times }) => (times === 1 ? entry : `${times} x ${entry}`))
}

test("The burst writer sends a command at once, and those behind it together, 16 at most", function* () {
  const client = new NotingClient()
  const writer = new BurstWriter(client as unknown as Redis)
  const command = {} as Command
  writer.write(command)
  assert.deepStrictEqual(client.log, ["write"])
  for (let i = 0; i < 39; i++) writer.write(command)
  yield* nextTurn
  const burst = ["cork", "16 x write", "uncork"]
  assert.deepStrictEqual(counted(client.log), ["write", ...burst, ...burst, "cork", "7 x write", "uncork"])
  client.log.length = 0
  writer.write(command)
  yield* nextTurn
  writer.write(command)
  yield* nextTurn
  assert.deepStrictEqual(client.log, ["write", "write"], "what comes one by one is written so")
})

test("The burst writer has sent an urgent command, and all before it, when it returns", function* () {
  const client = new NotingClient()
  const writer = new BurstWriter(client as unknown as Redis)
  const command = {} as Command
  for (let i = 0; i < 3; i++) writer.write(command)
  writer.write(command, true)
  assert.deepStrictEqual(client.log, ["write", "cork", "write", "write", "write", "uncork"])
  yield* nextTurn
  assert.strictEqual(client.log.at(-1), "uncork")
})

test("The burst writer serves other servers, and later the same, although a stream has thrown", function* () {
  const [broken, other] = [new NotingClient(), new NotingClient()]
  const uncork = broken.stream.uncork
  broken.stream.uncork = () => {
    broken.stream.uncork = uncork
    throw new Error("the stream is broken")
  }
  const command = {} as Command
  const thrown = yield* Effect.acquireRelease(
    Effect.sync(() => {
      const thrown: Array<unknown> = []
      const others = process.listeners("uncaughtException")
      process.removeAllListeners("uncaughtException")
      process.on("uncaughtException", (error) => void thrown.push(error.message))
      return { thrown, others }
    }),
    ({ others }) =>
      Effect.sync(() => {
        process.removeAllListeners("uncaughtException")
        for (const listener of others) process.on("uncaughtException", listener)
      })
  )
  for (const client of [broken, other]) {
    const writer = new BurstWriter(client as unknown as Redis)
    for (let i = 0; i < 2; i++) writer.write(command)
  }
  yield* nextTurn
  assert.deepStrictEqual(thrown.thrown, ["the stream is broken"])
  assert.deepStrictEqual(other.log, ["write", "cork", "write", "uncork"])
  other.log.length = 0
  const writer = new BurstWriter(other as unknown as Redis)
  for (let i = 0; i < 2; i++) writer.write(command)
  yield* nextTurn
  assert.deepStrictEqual(other.log, ["write", "cork", "write", "uncork"])
})
