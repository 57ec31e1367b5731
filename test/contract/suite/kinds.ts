/**
 * Every kind of lock.
 */
import { FairLock, FencedLock, Lock, NonReentrantLock, ReadWriteLock, SpinLock } from "effect-redis-lock"
import type { Kind } from "./contract.ts"

const exclusive = { mode: "exclusive", reentrant: true } as const

export const reentrant: Kind = { ...exclusive, name: "a reentrant lock", make: Lock.make }

export const fair: Kind = { ...exclusive, name: "a fair lock", make: FairLock.make }

export const fenced: Kind = { ...exclusive, name: "a fenced lock", make: FencedLock.make }

export const spin: Kind = { ...exclusive, name: "a spin lock", make: SpinLock.make, polls: true }

export const nonReentrant: Kind = {
  name: "a non-reentrant lock",
  make: NonReentrantLock.make,
  mode: "exclusive",
  reentrant: false
}

export const nonReentrantFair: Kind = {
  name: "a fair non-reentrant lock",
  make: (name, options) => NonReentrantLock.make(name, { ...options, fair: true }),
  mode: "exclusive",
  reentrant: false
}

export const write: Kind = {
  name: "a write lock",
  make: (name, options) => ReadWriteLock.make(name, options).writeLock,
  mode: "write",
  reentrant: true
}

export const read: Kind = {
  name: "a read lock",
  make: (name, options) => ReadWriteLock.make(name, options).readLock,
  rival: (name) => ReadWriteLock.make(name).writeLock,
  mode: "read",
  reentrant: true
}

export const kinds: ReadonlyArray<Kind> = [reentrant, fair, fenced, spin, nonReentrant, nonReentrantFair, write, read]
