/**
 * Who asks for a lock, as far as re-entry is concerned. Fiber ids change inside timeouts, races and forks, so the holdings
 * that a `withLock` body may re-enter travel in a reference that every child fiber inherits.
 */
import * as Context from "effect/Context"
import type { Fiber } from "effect/Fiber"
import * as Scope from "effect/Scope"
import type { Hold } from "./Hold.ts"
import type { Lease } from "./Lease.ts"

/**
 * The holds of the `withLock` sections around the running code, innermost first.
 */
export interface Sections {
  readonly hold: Hold
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

/**
 * Everything by which an acquisition may recognise a holding as its own.
 */
export interface Identity {
  readonly owner: Owner
  readonly fiberId: number
  /** Only acquisitions into a scope (`Lock.scoped`) know holdings by their scope. */
  readonly scope: Scope.Scope | undefined
}

export const identityOf = (fiber: Fiber<unknown, unknown>, scope: Scope.Scope | undefined): Identity => ({
  owner: fiber.getRef(CurrentOwner),
  fiberId: fiber.id,
  scope
})

/**
 * The hold by which an acquisition may re-enter: that of a section around it, or one that was acquired by the same explicit owner,
 * or, where neither side has an explicit owner, by the same fiber or in the same scope. Only holds that have not begun to release
 * count: what a section has left to a fiber that outlives it belongs to that fiber alone.
 */
export const ownHold = (identity: Identity, lease: Lease): Hold | undefined => {
  for (let section = identity.owner.sections; section !== undefined; section = section.outer) {
    if (section.hold.lease === lease && !section.hold.released) return section.hold
  }
  return lease.held.find(({ by }) => isSame(identity, by))
}

const isSame = (identity: Identity, by: Identity): boolean =>
  identity.owner.explicit !== undefined || by.owner.explicit !== undefined
    ? identity.owner.explicit === by.owner.explicit
    : identity.fiberId === by.fiberId || (identity.scope !== undefined && identity.scope === by.scope)
