/**
 * Finds out whether only clients that may share a lock are inside at the same time, and whether their tokens rise.
 */
import type { Process } from "./network.ts"
import type { Side } from "./workload.ts"

/** A holder of one side, which may re-enter what it holds. */
export interface Client {
  readonly side: Side
  /** Its description is the name of the worker. */
  readonly owner: symbol
  readonly process: Process
  /** Whether somebody who excludes it has entered while its process was stopped: it may leave, and do nothing else. */
  isOvertaken?: boolean
}

/** Whether these leave no room for one more. */
const crowds = (share: Side["share"], others: ReadonlyArray<Client>): boolean =>
  typeof share === "object"
    ? others.reduce((sum, { side }) => sum + (typeof side.share === "object" ? side.share.permits : 0), share.permits) >
      share.of
    : others.some(({ side }) => share === "nobody" || side.share === "nobody")

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
    const all = this.#inside.filter(({ owner }) => owner !== client.owner)
    const others = all.filter(({ process }) => !process.isBehind)
    const isCrowded = crowds(share, others)
    if (crowds(share, all)) {
      for (const other of all) {
        if (other.process.isBehind && (typeof share === "object" || crowds(share, [other]))) other.isOvertaken = true
      }
    }
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
