import * as Effect from "effect/Effect"

/** Runs what belongs to the application, such as the resumption of one of its fibers, on its own call stack. */
export interface OwnTurn {
  readonly inOwnTurn: (task: () => void) => void
}

/** Goes on in a turn of its own, behind the fibers that were woken before: an exception from an observer must not end the task that woke it. */
export const inOwnTurn = (client: OwnTurn): Effect.Effect<void> =>
  Effect.callback((resume) => client.inOwnTurn(() => resume(Effect.void)))

/**
 * The sections and fibers that depend on something that can be lost. Each is told of the loss once, on a call stack of its
 * own, and counts until it unsubscribes: a section does when it has ended.
 */
export class Dependents {
  readonly #listeners = new Set<() => void>()

  get isEmpty(): boolean {
    return this.#listeners.size === 0
  }

  /** A listener that is added after the loss is told at once. The result unsubscribes it. */
  add(listener: () => void, client: OwnTurn, isLost: boolean): () => void {
    if (isLost) client.inOwnTurn(listener)
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  tell(client: OwnTurn): void {
    for (const listener of this.#listeners) client.inOwnTurn(listener)
  }
}
