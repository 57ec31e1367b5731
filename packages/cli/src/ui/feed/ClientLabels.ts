/**
 * The labels that clients had when they were seen: a client stores its label only after a second, and removes it when it is closed.
 */
import type { LockState } from "effect-redis-lock"
import { clientOf } from "../../visible.ts"

const mostClients = 5000

export class ClientLabels {
  readonly #byClient = new Map<string, string>()

  of(owner: string): string | undefined {
    return this.#byClient.get(clientOf(owner))
  }

  /** Learns the labels in a state, and adds to it those that are known of others. */
  labelled(state: LockState): LockState {
    const label = <A extends { readonly owner: string; readonly label?: string }>(one: A): A => {
      if (one.label !== undefined) this.#learn(one.owner, one.label)
      const known = this.of(one.owner)
      return known === undefined ? one : { ...one, label: known }
    }
    return { ...state, holders: state.holders.map(label), waiters: state.waiters.map(label) }
  }

  #learn(owner: string, label: string): void {
    const client = clientOf(owner)
    this.#byClient.delete(client)
    this.#byClient.set(client, label)
    if (this.#byClient.size <= mostClients) return
    for (const [oldest] of this.#byClient) {
      this.#byClient.delete(oldest)
      return
    }
  }
}
