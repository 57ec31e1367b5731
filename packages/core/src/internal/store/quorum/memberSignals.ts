import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { LockStoreError } from "../../../LockError.ts"
import type { Signal } from "../../../RedisDriver.ts"
import { reconnecting } from "../../time/schedules.ts"
import { keyAt, type Member, memberText } from "./QuorumCall.ts"

/** The signals of one member. They never fail, so that a member that is down does not silence the others. */
export const memberSignals = (member: Member, channel: string): Stream.Stream<Signal, LockStoreError> => {
  let isDown = false
  return Stream.suspend(() => member.store.subscribe(keyAt(member, channel))).pipe(
    Stream.tap(() =>
      Effect.sync(() => {
        isDown = false
      })
    ),
    Stream.tapError((error) =>
      Effect.suspend(() => {
        if (isDown) return Effect.void
        isDown = true
        return Effect.annotateLogs(Effect.logWarning("No wake-up signals from one server of the quorum.", error), {
          member: memberText(member)
        })
      })
    ),
    Stream.retry(reconnecting)
  )
}
