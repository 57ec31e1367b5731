/**
 * The kinds of lock that both sides have: under one name they exclude each other.
 */
import {
  FairLock,
  FencedLock,
  Lock,
  type LockReentered,
  NonReentrantLock,
  ReadWriteLock,
  type RedisLock,
  SpinLock
} from "effect-redis-lock"
import type { LockKind as JavaKind } from "./JavaClient.ts"

export interface LockKind {
  /** What the Java program calls it. */
  readonly java: JavaKind
  readonly ours: (name: string) => Lock.Lock<RedisLock.RedisLock, LockReentered>
  /** Whether a holder may enter again. */
  readonly reentrant: boolean
  /** Whether waiters wait for a message, and do not ask again and again. */
  readonly notifies: boolean
}

export const lockKinds = {
  RLock: { java: "lock", ours: (name) => Lock.make(name), reentrant: true, notifies: true },
  RFairLock: { java: "fair", ours: (name) => FairLock.make(name), reentrant: true, notifies: true },
  RSpinLock: { java: "spin", ours: (name) => SpinLock.make(name), reentrant: true, notifies: false },
  RFencedLock: { java: "fenced", ours: (name) => FencedLock.make(name), reentrant: true, notifies: true },
  "non-reentrant RLock": {
    java: "nonReentrant",
    ours: (name) => NonReentrantLock.make(name),
    reentrant: false,
    notifies: true
  },
  "non-reentrant RFairLock": {
    java: "nonReentrantFair",
    ours: (name) => NonReentrantLock.make(name, { fair: true }),
    reentrant: false,
    notifies: true
  },
  "write lock": {
    java: "write",
    ours: (name) => ReadWriteLock.make(name).writeLock,
    reentrant: true,
    notifies: true
  }
} as const satisfies Record<string, LockKind>

export type LockKindName = keyof typeof lockKinds
