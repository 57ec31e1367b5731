import * as Arr from "effect/Array"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { InvalidLockOptions, LockLost, LockStoreError } from "../../LockError.ts"
import { type Hold, InternalHolding } from "../hold/Hold.ts"
import { releaseTogether, staysTaken } from "../hold/release.ts"
import { goesTogether } from "../kinds/kinds.ts"
import { printsAs } from "../report/shown.ts"
import { groupedBy } from "./together.ts"

/** The token of each member by its name; a second member with the same name is `name#2`. */
export type Tokens<T> = Readonly<Record<string, T>>

/**
 * The holds of all members of a composed lock: held while all are.
 */
export class MultiHold<T> extends InternalHolding<Tokens<T>> {
  readonly name: string
  readonly holds: ReadonlyArray<Hold>
  readonly #members: ReadonlyArray<InternalHolding<T>>

  constructor(name: string, members: ReadonlyArray<InternalHolding<T>>) {
    super()
    this.name = name
    this.#members = members
    this.holds = Arr.flatMap(members, ({ holds }) => holds)
  }

  get owner(): string {
    return [...new Set(this.holds.map(({ owner }) => owner))].join(", ")
  }

  get token(): Tokens<T> {
    const tokens = new Map<string, T>()
    for (const { name, token } of this.#members) {
      let key = name
      for (let i = 2; tokens.has(key); i++) key = `${name}#${i}`
      tokens.set(key, token)
    }
    return Object.fromEntries(tokens)
  }

  /** The first loss among the members; the release of one only where none is lost. */
  checkLost(): LockLost | undefined {
    let first: LockLost | undefined
    for (const hold of this.holds) {
      const lost = hold.checkLost()
      if (lost !== undefined && lost.reason !== "Released") return lost
      first ??= lost
    }
    return first
  }

  isOver(): boolean {
    return this.holds.some((hold) => hold.isOver())
  }

  get awaitLost(): Effect.Effect<never, LockLost> {
    return Effect.raceAllFirst(this.holds.map(({ awaitLost }) => awaitLost))
  }

  renew(leaseTime?: Duration.Input): Effect.Effect<void, LockLost | LockStoreError | InvalidLockOptions> {
    return Effect.forEach(this.holds, (hold) => hold.renew(leaseTime), { concurrency: "unbounded", discard: true })
  }

  releaseNow(): Effect.Effect<void, LockLost | LockStoreError> {
    return releaseAll(this.holds)
  }

  onLost(listener: () => void): () => void {
    let isCalled = false
    const once = () => {
      if (isCalled) return
      isCalled = true
      listener()
    }
    const withdrawals = this.holds.map((hold) => hold.onLost(once))
    return () => {
      for (const withdraw of withdrawals) withdraw()
    }
  }
}

type Failures = ReadonlyArray<LockLost | LockStoreError>

/**
 * Releases all holds, even if some releases fail, and fails with every failure, losses first. The caller is uninterruptible, and runs the
 * result at once.
 */
export const releaseAll = (holds: ReadonlyArray<Hold>): Effect.Effect<void, LockLost | LockStoreError> => {
  // one command has acquired those of one owner, at one client and in one slot, and one can free them
  const groups = groupedBy(holds, (hold) => (isFreedTogether(hold) ? hold.owner : hold))
  const releases = groups.map((group) => (group.length === 1 ? releaseAlone(group[0]!) : releaseTogether(group)))
  return releases.length === 1
    ? Effect.flatMap(releases[0]!, failing)
    : Effect.flatMap(Effect.all(releases, { concurrency: "unbounded" }), (failures) => failing(failures.flat()))
}

const releaseAlone = (hold: Hold): Effect.Effect<Failures> =>
  Effect.match(hold.releaseNow(), { onSuccess: () => [], onFailure: (failure) => [failure] })

const failing = (failures: Failures): Effect.Effect<void, LockLost | LockStoreError> =>
  failures.length === 0
    ? Effect.void
    : Exit.asVoidAll(
        failures.toSorted((a, b) => Number(b._tag === "LockLost") - Number(a._tag === "LockLost")).map(Exit.fail)
      )

/** Whether this is the last hold of a lock that one command can release together with others; a re-entry may keep one taken by its `minHold`. */
const isFreedTogether = ({ lease, released }: Hold): boolean =>
  !released && lease.holds === 1 && goesTogether(lease) && !staysTaken(lease)

printsAs(MultiHold.prototype, ({ name, owner }) => ({ _id: "effect-redis-lock/Holding", name, owner }))
