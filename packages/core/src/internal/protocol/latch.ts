/** The name of a latch in messages. */
export const latchTitle = "CountDownLatch"
