/**
 * The message storage that the runners of the process tests share.
 */
import { assert } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { MessageStorage, ShardId } from "effect/cluster"
import { eventually } from "../kit/eventually.ts"
import { layerRemote, serveMessages } from "./messages.ts"
import { testLive } from "../kit/test.ts"

testLive("A message that a runner has read and dropped comes to the next reader", function* () {
  const driver = Context.get(yield* Layer.build(MessageStorage.MemoryDriver.layer), MessageStorage.MemoryDriver)
  const { port, reads } = yield* serveMessages(driver.encoded, 300)
  const storageOf = (reader: string) =>
    Effect.map(Layer.build(Layer.fresh(layerRemote(port, reader))), (context) =>
      Context.get(context, MessageStorage.MessageStorage)
    )
  const [dropping, owner] = [yield* storageOf("dropping"), yield* storageOf("owner")]
  yield* driver.encoded.saveEnvelope({
    envelope: {
      _tag: "Request",
      requestId: "1",
      address: { shardId: { group: "default", id: 1 }, entityType: "Counter", entityId: "1" },
      tag: "Count",
      payload: { message: "1-1" },
      headers: {}
    },
    primaryKey: null,
    deliverAt: null
  })
  const read = (storage: MessageStorage.MessageStorage["Service"]) =>
    Effect.map(storage.unprocessedMessages([ShardId.make("default", 1)]), ({ length }) => length)

  assert.strictEqual(yield* read(dropping), 1)
  assert.strictEqual(reads.get("1")?.reader, "dropping")
  assert.strictEqual(yield* read(owner), 0, "it is claimed")
  yield* eventually("the owner reads it", read(owner), (count) => count === 1, "20 seconds")
  assert.strictEqual(reads.get("1")?.reader, "owner")
})
