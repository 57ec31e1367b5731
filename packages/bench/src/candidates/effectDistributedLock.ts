import { DistributedSemaphore, RedisBacking } from "effect-distributed-lock"
import { Effect, ManagedRuntime } from "effect3"
import { Redis } from "ioredis5"
import { type Kind, type Library, permits, type Step } from "../Candidate.ts"
import { holdBySections } from "./promises.ts"

const stepping = (step: Step): Effect.Effect<void> => Effect.async<void>((resume) => step(() => resume(Effect.void)))

export const candidate: Library = {
  insideScripts: ["zremrangebyscore", "zcard", "zadd", "zscore", "zrem", "pexpire", "publish"],
  keyOf: (name) => `semaphore:${name}`,
  open: async ({ leaseMillis, port }) => {
    const runtime = ManagedRuntime.make(RedisBacking.layer(new Redis({ port })))
    await runtime.runtime()
    const under = <A>(name: string, kind: Kind, section: Effect.Effect<A>) =>
      DistributedSemaphore.make(name, { limit: kind === "semaphore" ? permits : 1, ttl: leaseMillis }).pipe(
        Effect.flatMap((semaphore) => semaphore.withPermits(1)(section))
      )
    return {
      work: async ({ kind, next, section, think }) => {
        const body = section === undefined ? Effect.void : stepping(section)
        for (let name = next(); name !== undefined; name = next()) {
          await runtime.runPromise(under(name, kind, body))
          if (think !== undefined) await new Promise<void>(think)
        }
      },
      wait: (name, waiters) => {
        let failed = 0
        for (let i = 0; i < waiters; i++) runtime.runPromise(under(name, "lock", Effect.never)).catch(() => failed++)
        return { failed: () => failed }
      },
      hold: (names, kind) =>
        holdBySections(names, (name, section) =>
          // interrupted if it is lost, which aborts the signal
          runtime.runPromise(under(name, kind, Effect.promise(section)))
        )
    }
  }
}
