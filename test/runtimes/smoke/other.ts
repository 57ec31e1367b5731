/**
 * The other process of `locks.ts`: `other.js '<settings>'`.
 */
import { type Duration, Effect } from "effect"
import { Lock, PermitSemaphore } from "effect-redis-lock"
import { createInterface } from "node:readline"
import { count } from "./count.ts"

export interface OtherSettings {
  readonly layers: string
  readonly url: string
  readonly task: "hold" | "permit" | "count"
  /** Of the lock or the semaphore. */
  readonly name: string
  /** Where to count. */
  readonly file?: string
  readonly watchdogLeaseTime: Duration.Input
  readonly fallbackInterval: Duration.Input
  readonly keyPrefix: string
}

const { file, layers, name, task, url, ...options } = JSON.parse(process.argv[2]!) as OtherSettings
const { makeLive } = (await import(`./${layers}.js`)) as typeof import("./ioredis.ts")

/** Says that it holds, until it is told to release. */
const untilTold = Effect.callback<void>((resume) => {
  const lines = createInterface({ input: process.stdin })
  lines.on("line", () => {
    lines.close()
    // nothing else keeps the process
    process.stdin.destroy()
    resume(Effect.void)
  })
  console.log("held")
})

const tasks = {
  hold: Lock.withLock(untilTold, name),
  permit: PermitSemaphore.withPermit(untilTold, PermitSemaphore.make(name, { permits: 2 })),
  count: Effect.sync(() => process.stdin.destroy()).pipe(Effect.andThen(count(name, file!)))
}

await Effect.runPromise(Effect.provide(tasks[task], makeLive(url, options)))
console.log("done")
