import * as Exit from "effect/Exit"
import * as Stream from "effect/Stream"
import type { LockStoreError } from "../../../LockError.ts"
import type { KeyType } from "../../../RedisDriver.ts"
import type { Member, Outcome } from "./QuorumCall.ts"
import { notReached } from "./notReached.ts"

/** The keys at all members that answer: what a majority keeps is at one of them, unless a majority fails. */
export const scanMajority = (
  members: ReadonlyArray<Member>,
  required: number,
  pattern: string,
  type: KeyType
): Stream.Stream<string, LockStoreError> =>
  Stream.suspend(() => {
    const outcomes: Array<Outcome<unknown> | undefined> = members.map(() => undefined)
    let failures = 0
    const scans = members.map(({ store }, i) =>
      Stream.catch(store.scan(pattern, type), (failure) => {
        outcomes[i] = Exit.fail(failure)
        return ++failures <= members.length - required
          ? Stream.empty
          : Stream.fromEffect(
              notReached(members, required, { operation: { name: "scan" }, keys: [pattern] }, outcomes, 0)
            )
      })
    )
    return Stream.mergeAll(scans, { concurrency: "unbounded" })
  })
