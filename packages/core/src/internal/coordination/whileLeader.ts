/**
 * Runs an effect as the leader, again after each loss of the leadership, until the effect ends by itself.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Schedule from "effect/Schedule"
import type { LockStoreError } from "../../LockError.ts"
import { type Prepare, section } from "../acquire/sections.ts"
import type { Invalid } from "../options/invalid.ts"
import { leaderships } from "./LeaderElectionImpl.ts"
import { type HeldLeadership, isLossOf } from "./Leadership.ts"

/** The effect's own failure, as opposed to one of the campaign. */
class EffectFailed<E> {
  readonly cause: Cause.Cause<E>

  constructor(cause: Cause.Cause<E>) {
    this.cause = cause
  }
}

/** The leadership was lost before the effect ended. */
class Deposed {
  readonly deposed = true
}

type Ended<E> = EffectFailed<E> | Deposed | LockStoreError | Invalid

const leadOnce = <A, E, R>(
  self: Effect.Effect<A, E, R>,
  name: string,
  campaign: Prepare<HeldLeadership>
): Effect.Effect<A, Ended<E>, R> =>
  Effect.suspend(() => {
    let own: Cause.Cause<E> | undefined
    const body = Effect.onExit(self, (exit) =>
      Effect.sync(() => {
        if (Exit.isFailure(exit) && !Cause.hasInterruptsOnly(exit.cause)) own = exit.cause
      })
    )
    return Effect.catchCause(section(leaderships, campaign, body), (cause): Effect.Effect<never, Ended<E>> => {
      // the effect may notice the loss before it is interrupted
      if (isLossOf(name, own ?? cause)) return Effect.fail(new Deposed())
      return own === undefined
        ? Effect.failCause(cause as Cause.Cause<LockStoreError | Invalid>)
        : Effect.fail(new EffectFailed(own))
    })
  })

export const leadUntilEnd = <A, E, R>(
  self: Effect.Effect<A, E, R>,
  name: string,
  campaign: Prepare<HeldLeadership>,
  restart: Schedule.Schedule<unknown> | undefined
): Effect.Effect<A, E | LockStoreError | Invalid, R> => {
  const untilEnd = Effect.retry(leadOnce(self, name, campaign), { while: (error) => error instanceof Deposed })
  const restarted =
    restart === undefined
      ? untilEnd
      : Effect.retry(untilEnd, { while: (error) => error instanceof EffectFailed, schedule: restart })
  return Effect.catchIf(
    restarted,
    (error): error is EffectFailed<E> => error instanceof EffectFailed,
    ({ cause }) => Effect.failCause(cause)
  ) as Effect.Effect<A, E | LockStoreError | Invalid, R>
}
