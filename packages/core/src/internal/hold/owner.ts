/**
 * The identity of a caller for the purpose of re-entry. Fiber ids change inside timeouts, races and forks, so the holdings
 * that a `withLock` body may re-enter travel in a reference that every child fiber inherits.
 */
import * as Context from "effect/Context"
import type { Fiber } from "effect/Fiber"
import * as Scope from "effect/Scope"

/**
 * The holds of the `withLock` sections around the running code, innermost first.
 */
export interface Sections {
  /** See `ownHold`. */
  readonly hold: object
  readonly outer: Sections | undefined
}

export interface Owner {
  /** Made by `Lock.withOwner`: everything below it is one owner, like a thread in Redisson. */
  readonly explicit: object | undefined
  readonly sections: Sections | undefined
}

export const CurrentOwner = Context.Reference<Owner>("effect-redis-lock/CurrentOwner", {
  defaultValue: (): Owner => ({ explicit: undefined, sections: undefined })
})

let lastOwnerId = 0

/** An owner is used once: `<client>:<number>`, as in Redisson. */
export const nextOwnerOf = (clientId: string): string => `${clientId}:${++lastOwnerId}`

/**
 * Everything by which an acquisition may recognise a holding as its own.
 */
export interface Identity {
  readonly owner: Owner
  readonly fiberId: number
  /** Only acquisitions into a scope (`Lock.scoped`) recognise holdings by their scope. */
  readonly scope: Scope.Scope | undefined
}

export const identityOf = (fiber: Fiber<unknown, unknown>, scope: Scope.Scope | undefined): Identity => ({
  owner: fiber.getRef(CurrentOwner),
  fiberId: fiber.id,
  scope
})
