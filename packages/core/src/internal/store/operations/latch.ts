/**
 * `lua/latch/`: Redisson's RCountDownLatch.
 */
import { latchChannel } from "../keys.ts"
import { doneReply, numberReply, operation, StoreCommand } from "./StoreOperation.ts"

export const operations = {
  count: operation("latch/count", { reply: numberReply }),
  countDown: operation("latch/count_down", { reply: numberReply }),
  set: operation("latch/set", { reply: doneReply }),
  delete: operation("latch/delete", { reply: doneReply })
}

export const count = (key: string): StoreCommand<number> => new StoreCommand(operations.count, [key], [])

/** Replies the count that is left. */
export const countDown = (key: string, publish: string): StoreCommand<number> =>
  new StoreCommand(operations.countDown, [key, latchChannel(key)], [publish])

/** Replies whether it was set: no count was there. */
export const set = (key: string, count: number, publish: string): StoreCommand<boolean> =>
  new StoreCommand(operations.set, [key, latchChannel(key)], [count, publish])

/** Replies whether there was one. */
export const remove = (key: string, publish: string): StoreCommand<boolean> =>
  new StoreCommand(operations.delete, [key, latchChannel(key)], [publish])
