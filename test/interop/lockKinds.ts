/**
 * The kinds of lock that both sides have: under one name they exclude each other.
 */
import { Lock } from "effect-redis-lock"
import type { LockKind as JavaKind } from "./JavaClient.ts"

export interface LockKind {
  /** What the Java program calls it. */
  readonly java: JavaKind
  readonly ours: (name: string) => Lock.Lock
  /** Whether waiters wait for a message, and do not ask again and again. */
  readonly notifies: boolean
}

export const lockKinds = {
  RLock: { java: "lock", ours: (name) => Lock.make(name), notifies: true }
} as const satisfies Record<string, LockKind>

export type LockKindName = keyof typeof lockKinds
