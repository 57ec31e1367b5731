/**
 * `lua/latch/`: Redisson's RCountDownLatch.
 */
import { latchChannel } from "../../keys.ts"
import { doneReply, numberReply } from "../replies/replies.ts"
import { operation, type StoreCommand } from "../StoreOperation.ts"

export const operations = {
  count: operation("latch/count", { reply: numberReply }),
  countDown: operation("latch/count_down", { reply: numberReply }),
  set: operation("latch/set", { reply: doneReply }),
  delete: operation("latch/delete", { reply: doneReply })
}

export const count = (key: string): StoreCommand<number> => ({ operation: operations.count, keys: [key], args: [] })

/** Replies the count that is left. */
export const countDown = (key: string, publish: string): StoreCommand<number> => ({
  operation: operations.countDown,
  keys: [key, latchChannel(key)],
  args: [publish]
})

/** Replies whether it was set: no count was there. */
export const set = (key: string, count: number, publish: string): StoreCommand<boolean> => ({
  operation: operations.set,
  keys: [key, latchChannel(key)],
  args: [count, publish]
})

/** Replies whether there was one. */
export const remove = (key: string, publish: string): StoreCommand<boolean> => ({
  operation: operations.delete,
  keys: [key, latchChannel(key)],
  args: [publish]
})
