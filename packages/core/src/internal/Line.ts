/**
 * The fibers of this process that wait for one lock, first come first served. Only the first talks to Redis; it is woken
 * through a queue of one signal, fed by the releases of this process and by the lock's channel. A signal stays until it is
 * taken, so that none is missed between an attempt and the wait that follows it.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Queue from "effect/Queue"
import * as Scope from "effect/Scope"
import type { Identity } from "./owner.ts"

export interface Waiter {
  readonly identity: Identity
  resume: (() => void) | undefined
}

/**
 * After so many hand-overs in a row within this process, the next waits for the reply of the release, for the sake of those
 * who poll from elsewhere without listening.
 */
const maxHandOvers = 8

export class Line {
  readonly #waiters = new Set<Waiter>()
  readonly #signals: Queue.Queue<void>
  /** Where the subscription to the lock's channel lives, once there is one. */
  readonly scope = Scope.makeUnsafe()
  subscribed = false
  /** Whether other clients listened to the channel at the last release. */
  othersListen = false
  #handOvers = 0

  constructor(signals: Queue.Queue<void>) {
    this.#signals = signals
  }

  get signals(): Queue.Queue<void> {
    return this.#signals
  }

  get isEmpty(): boolean {
    return this.#waiters.size === 0
  }

  join(identity: Identity): Waiter {
    const waiter: Waiter = { identity, resume: undefined }
    this.#waiters.add(waiter)
    return waiter
  }

  /** Leaves the line; when the first leaves, the next one's turn has come. */
  leave(waiter: Waiter): void {
    const wasFirst = this.isFirst(waiter)
    this.#waiters.delete(waiter)
    if (wasFirst) this.#first?.resume?.()
  }

  isFirst(waiter: Waiter): boolean {
    return this.#first === waiter
  }

  /** Sleeps until the waiter is the first, or until somebody calls it for another reason. */
  turn(waiter: Waiter): Effect.Effect<void> {
    return Effect.callback<void>((resume) => {
      if (this.isFirst(waiter)) {
        resume(Effect.void)
        return
      }
      waiter.resume = () => {
        waiter.resume = undefined
        resume(Effect.void)
      }
      return Effect.sync(() => {
        waiter.resume = undefined
      })
    })
  }

  /** Wakes the first waiter to try again. */
  signal(): void {
    Queue.offerUnsafe(this.#signals, undefined)
  }

  /** Forgets a signal that came before an attempt: the attempt answers it. */
  clear(): void {
    Queue.takeUnsafe(this.#signals)
  }

  /** Calls those who may share what was just acquired. */
  call(matches: (identity: Identity) => boolean): void {
    for (const waiter of [...this.#waiters]) {
      if (matches(waiter.identity)) {
        if (this.isFirst(waiter)) this.signal()
        else waiter.resume?.()
      }
    }
  }

  /**
   * Whether a release may wake the first waiter before the reply is there. Its attempt then reaches Redis right behind the
   * release and ahead of everybody else's, so it must not be done where others wait.
   */
  mayHandOver(): boolean {
    if (this.othersListen || this.#handOvers === maxHandOvers) {
      this.#handOvers = 0
      return false
    }
    this.#handOvers++
    return true
  }

  get #first(): Waiter | undefined {
    return this.#waiters.values().next().value
  }
}

/**
 * The lines of a client, by lock key. A line exists while somebody waits.
 */
export class Lines {
  readonly #lines = new Map<string, Line>()

  get size(): number {
    return this.#lines.size
  }

  get(key: string): Line | undefined {
    return this.#lines.get(key)
  }

  /** Joins the line of a lock, or begins one. */
  join(key: string, identity: Identity): Effect.Effect<readonly [Line, Waiter]> {
    return Effect.map(Queue.sliding<void>(1), (signals) => {
      let line = this.#lines.get(key)
      if (line === undefined) this.#lines.set(key, (line = new Line(signals)))
      return [line, line.join(identity)]
    })
  }

  /** Leaves; the last one to leave ends the line, and its subscription with it. */
  leave(key: string, line: Line, waiter: Waiter): Effect.Effect<void> {
    return Effect.suspend(() => {
      line.leave(waiter)
      if (!line.isEmpty) return Effect.void
      this.#lines.delete(key)
      return Scope.close(line.scope, Exit.void)
    })
  }
}
