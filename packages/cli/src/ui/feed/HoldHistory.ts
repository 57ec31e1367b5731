/**
 * Who has held which lock, and from when to when, as far as looks have shown it: kept in memory, and bounded.
 */
import type { LockChange } from "effect-redis-lock"
import { isKept } from "../../visible.ts"
import type { ClientLabels } from "./ClientLabels.ts"
import { holderOf } from "./lockLine.ts"
import type { Hold } from "../page/connection/wire.ts"

const holdsOfOneName = 100
const mostNames = 2000

export class HoldHistory {
  readonly #labels: ClientLabels
  /** By name, and by owner and mode. */
  readonly #current = new Map<string, ReadonlyMap<string, Hold>>()
  /** By name, the one that was held last is the last; of each, the last hold is the last. */
  readonly #ended = new Map<string, ReadonlyArray<Hold>>()

  constructor(labels: ClientLabels) {
    this.#labels = labels
  }

  change({ _tag, state: { holders, name } }: LockChange, now: number): void {
    // a renewal changes no holder, and is most of what happens
    if (_tag === "Renewed") return
    const before = this.#current.get(name)
    const current = new Map<string, Hold>()
    for (const holder of _tag === "Released" ? [] : holders) {
      // its minHold keeps it: nobody holds it
      if (isKept(holder.owner)) continue
      const key = `${holder.mode} ${holder.owner}`
      const hold = { ...holderOf(holder), since: now, isOlder: _tag === "Found", until: null }
      current.set(key, before?.get(key) ?? hold)
    }
    if (current.size === 0) this.#current.delete(name)
    else this.#current.set(name, current)
    for (const [key, hold] of before ?? []) {
      if (!current.has(key)) this.#end(name, { ...hold, until: now })
    }
  }

  /** The holds that last, and then those that have ended, the last one first. */
  of(name: string): ReadonlyArray<Hold> {
    const holds = [...(this.#current.get(name)?.values() ?? []), ...(this.#ended.get(name) ?? []).toReversed()]
    // the label is often known only after the hold has begun
    return holds.map((hold) => ({ ...hold, label: hold.label ?? this.#labels.of(hold.owner) }))
  }

  #end(name: string, hold: Hold): void {
    const ended = [...(this.#ended.get(name) ?? []), hold].slice(-holdsOfOneName)
    this.#ended.delete(name)
    this.#ended.set(name, ended)
    if (this.#ended.size <= mostNames) return
    for (const [oldest] of this.#ended) {
      this.#ended.delete(oldest)
      return
    }
  }
}
