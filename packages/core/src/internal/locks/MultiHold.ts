import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { InvalidLockOptions, LockLost, LockStoreError } from "../../LockError.ts"
import { Hold, InternalHolding } from "../hold/Hold.ts"
import type { Lease } from "../hold/Lease.ts"
import { releaseTogether, staysTaken } from "../hold/release.ts"
import { goesTogether } from "../kinds/kinds.ts"
import { printsAs } from "../report/shown.ts"

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
    const holds: Array<Hold> = []
    for (const member of members) holds.push(...member.holds)
    this.holds = holds
  }

  get owner(): string {
    return [...new Set(this.#members.map(({ owner }) => owner))].join(", ")
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
    return Effect.raceAllFirst(this.#members.map(({ awaitLost }) => awaitLost))
  }

  renew(leaseTime?: Duration.Input): Effect.Effect<void, LockLost | LockStoreError | InvalidLockOptions> {
    return Effect.forEach(this.#members, (member) => member.renew(leaseTime), {
      concurrency: "unbounded",
      discard: true
    })
  }

  releaseNow(): Effect.Effect<void, LockLost | LockStoreError> {
    return releaseAll(this.#members)
  }

  onLost(listener: () => void): () => void {
    let isCalled = false
    const once = () => {
      if (isCalled) return
      isCalled = true
      listener()
    }
    const withdrawals = this.#members.map((member) => member.onLost(once))
    return () => {
      for (const withdraw of withdrawals) withdraw()
    }
  }
}

/**
 * Releases all members, even if some releases fail, and fails with every failure, losses first. The caller is
 * uninterruptible.
 */
export const releaseAll = (held: ReadonlyArray<InternalHolding>): Effect.Effect<void, LockLost | LockStoreError> => {
  const together: Array<Array<Hold>> = []
  const alone: Array<InternalHolding> = []
  for (const member of held) {
    if (!(member instanceof Hold) || !isFreedTogether(member)) {
      alone.push(member)
      continue
    }
    const group = together.find(([first]) => haveOneOwner(first!.lease, member.lease))
    if (group === undefined) together.push([member])
    else group.push(member)
  }
  if (together.length === 1 && alone.length === 0) return Effect.flatMap(releaseGroup(together[0]!), failing)
  const releases = [...together.map(releaseGroup), ...alone.map(releaseAlone)]
  return Effect.flatMap(Effect.all(releases, { concurrency: "unbounded" }), (failures) => failing(failures.flat()))
}

const releaseGroup = (holds: ReadonlyArray<Hold>) =>
  holds.length === 1 ? releaseAlone(holds[0]!) : releaseTogether(holds)

const releaseAlone = (held: InternalHolding): Effect.Effect<ReadonlyArray<LockLost | LockStoreError>> =>
  Effect.match(held.releaseNow(), { onSuccess: () => [], onFailure: (failure) => [failure] })

const failing = (failures: ReadonlyArray<LockLost | LockStoreError>): Effect.Effect<void, LockLost | LockStoreError> =>
  failures.length === 0
    ? Effect.void
    : Exit.asVoidAll(
        failures
          .toSorted((a, b) => Number(b._tag === "LockLost") - Number(a._tag === "LockLost"))
          .map((failure) => Exit.fail(failure))
      )

/** Whether this is the last hold of a lock that one command can release together with others; a re-entry may keep one taken by its `minHold`. */
const isFreedTogether = ({ lease, released }: Hold): boolean =>
  !released && lease.holds === 1 && goesTogether(lease) && !staysTaken(lease)

const haveOneOwner = (a: Lease, b: Lease): boolean =>
  a.owner === b.owner &&
  (a.keys.lock === b.keys.lock || a.client.store.slot(a.keys.lock) === b.client.store.slot(b.keys.lock))

printsAs(MultiHold.prototype, ({ name, owner }) => ({ _id: "effect-redis-lock/Holding", name, owner }))
