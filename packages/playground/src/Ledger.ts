/**
 * What the lock guards: a balance that is read, and written as a whole. It counts the deposits that it has accepted, so that it knows how
 * many were overwritten.
 */
import { Effect } from "effect"
import type { Process, VirtualTime } from "./VirtualTime.ts"

/** How long a request or a reply is under way, milliseconds. */
const latencyMillis = 4

export type LedgerReply =
  | { readonly _tag: "Done"; readonly balance: number }
  | { readonly _tag: "StaleToken"; readonly newest: bigint }

export class Ledger {
  readonly #time: VirtualTime
  #newest = 0n
  balance = 0
  accepted = 0
  refused = 0

  constructor(time: VirtualTime) {
    this.#time = time
  }

  /** Deposits that somebody has made and somebody else has overwritten. */
  get lost(): number {
    return this.accepted - this.balance
  }

  /** From here on earlier holders are refused. */
  read(token: bigint | undefined): LedgerReply {
    return this.#fenced(token) ?? { _tag: "Done", balance: this.balance }
  }

  write(balance: number, token: bigint | undefined): LedgerReply {
    const refused = this.#fenced(token)
    if (refused !== undefined) return refused
    this.accepted++
    this.balance = balance
    return { _tag: "Done", balance }
  }

  #fenced(token: bigint | undefined): LedgerReply | undefined {
    if (token === undefined) return undefined
    if (token < this.#newest) {
      this.refused++
      return { _tag: "StaleToken", newest: this.#newest }
    }
    this.#newest = token
    return undefined
  }

  /** A request of a process: what was sent arrives, whatever becomes of its sender. */
  request(process: Process, ask: () => LedgerReply): Effect.Effect<LedgerReply> {
    return Effect.callback((resume) => {
      this.#time.after(latencyMillis, () => {
        const reply = ask()
        this.#time.after(latencyMillis, () => process.run(() => resume(Effect.succeed(reply))))
      })
    })
  }
}
