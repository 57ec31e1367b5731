/**
 * Awaits what must come true in real time, on a machine however busy.
 */
import { assert } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { inspect } from "node:util"

/** How long to wait for what must happen in the end. */
const patience = Duration.minutes(4)

/** What is looked at, again and again. */
export type Look<A, E, R> = Effect.Effect<A, E, R> | (() => Promise<A> | A)

/** At once where it can be: in virtual time no promise is ever kept. */
const answer = <A>(seen: Promise<A> | A): Effect.Effect<A> =>
  seen instanceof Promise ? Effect.promise(() => seen) : Effect.succeed(seen)

/** Looks again and again until it is as it must be; fails with what was last seen where it never is. Default: within four minutes. */
export const eventually = Effect.fnUntraced(function* <A, E = never, R = never>(
  what: string,
  look: Look<A, E, R>,
  holds: (seen: A) => boolean,
  within: Duration.Input = patience
) {
  const giveUpAt = performance.now() + Duration.toMillis(Duration.fromInputUnsafe(within))
  let last: unknown = "nothing"
  while (true) {
    const looks = Effect.isEffect(look) ? look : Effect.suspend(() => answer(look()))
    // a look may come back never, such as a command to a server that is gone
    const seen = yield* Effect.timeoutOption(looks, Math.max(1000, giveUpAt - performance.now()))
    if (seen._tag === "Some" && holds(seen.value)) return seen.value
    if (seen._tag === "None") assert.fail(`a look did not come back: ${what}; last seen: ${inspect(last)}`)
    last = seen.value
    if (performance.now() > giveUpAt) assert.fail(`never came true: ${what}; last seen: ${inspect(last)}`)
    // nothing tells when it comes true
    yield* Effect.sleep(10)
  }
})

/** {@link eventually} for what is true or false. */
export const until = <E = never, R = never>(what: string, condition: Look<boolean, E, R>) =>
  Effect.asVoid(eventually(what, condition, (holds) => holds))

/** Waits for what must come. Default: within four minutes. */
export const soon = <A, E, R>(
  what: string,
  self: Effect.Effect<A, E, R>,
  within: Duration.Input = patience
): Effect.Effect<A, E, R> =>
  Effect.timeoutOrElse(self, {
    duration: within,
    orElse: () =>
      Effect.die(new Error(`did not happen within ${Duration.format(Duration.fromInputUnsafe(within))}: ${what}`))
  })
