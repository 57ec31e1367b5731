/**
 * Tests of what is told by time alone, such as silence: a machine that stands still says the same.
 */
import { Cause, Duration, Effect, Exit, Scope } from "effect"
import type { Redis } from "ioredis"
import { expect } from "vitest"

/**
 * Runs steps that fail where this process, or a server that it is told to watch, stands still for as long as that: again if they have failed and
 * one did, as then they have shown nothing; at most twice. A line says so, also of a test that then passes. What they build is closed before that.
 * Choose at least half of the timeout on which the steps depend: what stands still for less does not make them fail.
 */
export const undisturbed = Effect.fnUntraced(function* <R>(
  by: Duration.Input,
  steps: (watch: (redis: Redis) => Effect.Effect<void>) => Effect.fn.Return<unknown, unknown, R | Scope.Scope>
) {
  for (let again = 0; ; again++) {
    let longest = 0
    const scope = yield* Scope.make()
    const watch = (redis: Redis) =>
      Effect.suspend(() => {
        let last = performance.now()
        const look = () => {
          const now = performance.now()
          longest = Math.max(longest, now - last)
          last = now
        }
        // no PING, which tests count
        const looks = Effect.promise(() => redis.time()).pipe(
          Effect.andThen(Effect.sync(look)),
          Effect.andThen(Effect.sleep(20))
        )
        return Effect.forever(looks).pipe(
          Effect.ensuring(Effect.sync(look)),
          Effect.forkIn(scope, { startImmediately: true }),
          Effect.asVoid
        )
      })
    const exit = yield* Effect.exit(
      Effect.scoped(
        Effect.ensuring(
          Effect.gen(() => steps(watch)),
          Scope.close(scope, Exit.void)
        )
      )
    )
    if (Exit.isSuccess(exit)) return
    if (longest < Duration.toMillis(by) || again === 2) return yield* exit
    const { currentTestName } = expect.getState()
    const [failure] = Cause.pretty(exit.cause).split("\n")
    // not console.log, which Vitest keeps to itself where the test passes
    process.stdout.write(
      `Run again, as the machine stood still for ${Math.round(longest)} ms: ${currentTestName}\n  ${failure}\n`
    )
  }
})
