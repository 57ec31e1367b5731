/** Runs what belongs to the application, such as the resumption of one of its fibers, on its own call stack. */
export interface OwnTurn {
  readonly inOwnTurn: (task: () => void) => void
}

/**
 * Those who depend on something that can be lost. Each is told once, in a turn of its own, and counts until it withdraws: a
 * section does when it has ended.
 */
export class Dependents {
  readonly #listeners = new Set<() => void>()

  get isEmpty(): boolean {
    return this.#listeners.size === 0
  }

  /** One that comes after the loss is told by itself. The result withdraws. */
  add(listener: () => void, client: OwnTurn, isLost: boolean): () => void {
    if (isLost) client.inOwnTurn(listener)
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  tell(client: OwnTurn): void {
    for (const listener of this.#listeners) client.inOwnTurn(listener)
  }
}
