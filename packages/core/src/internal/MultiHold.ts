import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import type { InvalidLockOptions, LockLost, LockStoreError } from "../LockError.ts"
import type { Held } from "./AnyLock.ts"
import { Hold } from "./Hold.ts"
import { releaseTogether } from "./release.ts"

/** What each member was granted, by its name; a second one of the same name is `name#2`. */
export type Tokens<T> = Readonly<Record<string, T>>

/**
 * The holds of all members of a composed lock: held while all are.
 */
export class MultiHold<T> implements Held<Tokens<T>> {
  readonly name: string
  readonly #members: ReadonlyArray<Held<T>>

  constructor(name: string, members: ReadonlyArray<Held<T>>) {
    this.name = name
    this.#members = members
  }

  get holds(): ReadonlyArray<Hold> {
    return this.#members.flatMap(({ holds }) => holds)
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

  get isHeld(): Effect.Effect<boolean> {
    return Effect.map(Effect.all(this.#members.map(({ isHeld }) => isHeld)), (all) => all.every((isHeld) => isHeld))
  }

  get ensureHeld(): Effect.Effect<void, LockLost> {
    return Effect.forEach(this.#members, ({ ensureHeld }) => ensureHeld, { discard: true })
  }

  get remaining(): Effect.Effect<Duration.Duration> {
    return Effect.map(Effect.all(this.#members.map(({ remaining }) => remaining)), (all) =>
      all.reduce((a, b) => Duration.min(a, b))
    )
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

  get release(): Effect.Effect<void, LockLost | LockStoreError> {
    return Effect.uninterruptible(Effect.suspend(() => this.releaseNow()))
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
 * Releases all, whatever becomes of each, and fails with every failure, losses first. For a caller that is uninterruptible.
 */
export const releaseAll = (held: ReadonlyArray<Held>): Effect.Effect<void, LockLost | LockStoreError> => {
  const together = new Map<string, Array<Hold>>()
  const alone: Array<Held> = []
  for (const member of held) {
    if (!(member instanceof Hold) || !isFreedTogether(member)) {
      alone.push(member)
      continue
    }
    const { client, keys, owner } = member.possession
    const group = `${owner} ${client.store.slot(keys.lock)}`
    const holds = together.get(group)
    if (holds === undefined) together.set(group, [member])
    else holds.push(member)
  }
  const releases = [
    ...[...together.values()].map(releaseTogether),
    ...alone.map((member) => Effect.map(Effect.result(member.releaseNow()), (result) => [result]))
  ]
  return Effect.flatMap(
    releases.length === 1
      ? Effect.map(releases[0]!, (only) => [only])
      : Effect.all(releases, { concurrency: "unbounded" }),
    (results) => {
      const failures = results.flat().filter(Result.isFailure)
      if (failures.length === 0) return Effect.void
      failures.sort((a, b) => Number(b.failure._tag === "LockLost") - Number(a.failure._tag === "LockLost"))
      return Exit.asVoidAll(failures.map(({ failure }) => Exit.fail(failure)))
    }
  )
}

/** The last hold of a lock that several of can be freed by one command. */
const isFreedTogether = ({ possession, released }: Hold): boolean =>
  !released && possession.holds === 1 && possession.kind.together && !possession.client.isQuorum
