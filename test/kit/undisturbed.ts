/**
 * Tests of what is told by time alone, such as silence: a machine that stands still says the same.
 */
import { Cause, Duration, Effect, Exit, Scope } from "effect"
import type { Redis } from "ioredis"

/**
 * Runs steps that fail where this process, or a server that it is told to watch, stands still for as long as that: once more if they have failed and
 * one did, as then they have shown nothing. What they build is closed before that.
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
    if (longest < Duration.toMillis(by) || again === 9) return yield* exit
    console.log(`Once more, as it stood still for ${Math.round(longest)} ms. Before that: ${Cause.pretty(exit.cause)}`)
  }
})
