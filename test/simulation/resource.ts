/**
 * Finds out whether only clients that may share a lock are inside at the same time, and whether their tokens rise.
 */
import type { Side } from "./workload.ts"

/** A holder of one side, which may re-enter what it holds. */
export interface Client {
  readonly side: Side
  /** Its description is the name of the worker. */
  readonly owner: symbol
}

/** What the locks of one name protect: the clients inside, and the last tokens. */
export class Resource {
  readonly #mayBeShared: boolean
  readonly #losesGrants: boolean
  readonly #inside: Array<Client> = []
  #lastWritten = 0n
  #lastSeen = 0n

  /** `losesGrants`: somebody else may hold it as well, but under a later token. */
  constructor(mayBeShared: boolean, losesGrants: boolean) {
    this.#mayBeShared = mayBeShared
    this.#losesGrants = losesGrants
  }

  /** The violation, if there is one. */
  enter(client: Client, token: bigint | undefined): string | undefined {
    const { share } = client.side
    const others = this.#inside.filter(({ owner }) => owner !== client.owner).map(({ side }) => side.share)
    const isCrowded =
      typeof share === "object"
        ? others.reduce((sum, other) => sum + (typeof other === "object" ? other.permits : 0), share.permits) > share.of
        : others.some((other) => share === "nobody" || other === "nobody")
    this.#inside.push(client)
    // where leases end early, tokens rise in the order of grants, not of entries
    if (this.#mayBeShared) return undefined
    if (isCrowded && !this.#losesGrants) return `is inside together with ${others.length} others`
    // for readers, a server without its data knows of no writer
    if (token === undefined || (share === "readers" && token === 0n)) return undefined
    const least = share === "readers" ? this.#lastWritten : this.#lastSeen + 1n
    if (token < least) return `has token ${token}, which is below ${least}`
    if (share === "nobody") this.#lastWritten = token
    if (token > this.#lastSeen) this.#lastSeen = token
    return undefined
  }

  leave(client: Client): void {
    this.#inside.splice(this.#inside.indexOf(client), 1)
  }
}
