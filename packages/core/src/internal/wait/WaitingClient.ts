import type * as Effect from "effect/Effect"
import type { Fiber } from "effect/Fiber"
import type { OwnTurn } from "../hold/Dependents.ts"
import type { ProtocolClient } from "../protocol/ProtocolClient.ts"
import type { Telemetry } from "../report/telemetry/telemetry.ts"
import type { AlarmClock } from "../time/AlarmClock.ts"
import type { Subscriptions } from "./Subscriptions.ts"

/** The part of the client that waiting needs. */
export interface WaitingClient extends ProtocolClient, OwnTurn {
  readonly alarms: AlarmClock
  /** Monotonic time in milliseconds. */
  readonly now: () => number
  /** Runs an effect in the background, until the client is closed. */
  readonly fork: <A, E>(effect: Effect.Effect<A, E>) => Fiber<A, E>
  /** Whether the client is closing or closed: the store then refuses commands, and nothing runs in the background. */
  readonly isClosing: boolean
  readonly subscriptions: Subscriptions
  readonly telemetry: Telemetry
  readonly presence: { readonly begin: () => void }
}
