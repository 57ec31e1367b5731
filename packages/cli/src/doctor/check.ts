/**
 * One line of `redis-lock doctor`.
 */
import type { RedisDriver } from "effect-redis-lock"
import { createHash } from "node:crypto"

export interface Check {
  readonly check: string
  readonly level: "ok" | "warning" | "problem"
  /** What was found; unless all is well, with the remedy. */
  readonly message: string
}

export const ok = (check: string, message: string): Check => ({ check, level: "ok", message })
export const warning = (check: string, message: string): Check => ({ check, level: "warning", message })
export const problem = (check: string, message: string): Check => ({ check, level: "problem", message })

/** What went wrong, in whichever part of the library. */
export interface Trouble {
  readonly message: string
  readonly reason?: string
  readonly cause?: unknown
}

/** What it says; of a refusal only what the server says, as its remedy depends on the check. */
export const wordsOf = (error: Trouble): string =>
  error.reason === "NoPermission" && error.cause instanceof Error ? error.cause.message : error.message

export type Driver = RedisDriver.RedisDriver["Service"]

/** A script of the doctor's own. */
export const scriptOf = (name: string, lua: string): RedisDriver.RedisScript => ({
  name,
  lua,
  sha1: createHash("sha1").update(lua).digest("hex")
})
