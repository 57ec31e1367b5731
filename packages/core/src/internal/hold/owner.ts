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
export class Sections {
  /** See `ownHold`. */
  readonly hold: object
  readonly outer: Sections | undefined

  constructor(hold: object, outer: Sections | undefined) {
    this.hold = hold
    this.outer = outer
  }
}

export class Owner {
  /** Made by `Lock.withOwner`: everything below it is one owner, like a thread in Redisson. */
  readonly explicit: object | undefined
  readonly sections: Sections | undefined

  constructor(explicit: object | undefined, sections: Sections | undefined) {
    this.explicit = explicit
    this.sections = sections
  }
}

export const CurrentOwner = Context.Reference<Owner>("effect-redis-lock/CurrentOwner", {
  defaultValue: () => new Owner(undefined, undefined)
})

let lastOwnerId = 0

/** An owner is used once: `<client>:<number>`, as in Redisson. */
export const nextOwnerOf = (clientId: string): string => `${clientId}:${++lastOwnerId}`

/**
 * Everything by which an acquisition may recognise a holding as its own.
 */
export class Identity {
  readonly owner: Owner
  readonly fiberId: number
  /** Only acquisitions into a scope (`Lock.scoped`) recognise holdings by their scope. */
  readonly scope: Scope.Scope | undefined

  constructor(owner: Owner, fiberId: number, scope: Scope.Scope | undefined) {
    this.owner = owner
    this.fiberId = fiberId
    this.scope = scope
  }
}

export const identityOf = (fiber: Fiber<unknown, unknown>, scope: Scope.Scope | undefined): Identity =>
  new Identity(fiber.getRef(CurrentOwner), fiber.id, scope)
