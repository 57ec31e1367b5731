import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import type * as Scope from "effect/Scope"
import { type Failure, messageOf } from "../failure.ts"
import { scoped } from "./listening.ts"

/** A connection as the log names it. */
interface Named {
  readonly name: string
  readonly server: string
  /** Distinguishes it from others of that name. */
  readonly key: string
  /** Whether it is not an application's. */
  readonly isOurs: boolean
}

interface Outage {
  readonly since: number
  /** What has been logged: a transient refusal, a permanent one, and that the connection has ended for good. */
  readonly logged: Set<"passing" | "lasting" | "ended">
}

/** Counts how often connections came back; documented in docs/telemetry.md. */
const reconnectsOf = (connection: string) =>
  Metric.counter("redis_lock.reconnects", {
    description: "Connections to Redis that were lost and are back",
    incremental: true,
    attributes: { "lock.connection": connection, unit: "{reconnect}" }
  })

const reconnects: ReadonlyMap<string, ReturnType<typeof reconnectsOf>> = new Map(
  ["commands", "subscriptions"].map((connection) => [connection, reconnectsOf(connection)])
)

/** Reasons for which reconnecting does not help. */
const lasting: ReadonlySet<string> = new Set<Failure["reason"]>(["Failed", "NoPermission", "NotAuthenticated"])

export const isLasting = ({ reason }: Failure): boolean => lasting.has(reason)

/**
 * Logs when a connection is lost, when reconnecting is refused or given up for good, and when the connection is back: once each, no matter
 * how often ioredis tries. A permanent refusal is logged even after a transient one. The annotations are `event` (`lost`,
 * `refused`, `ended`, `restored`), `connection` (`commands`, `subscriptions`), `server`, and `reason` and `error` or `outageMillis`.
 */
export class ConnectionLog {
  readonly #write: (entry: Effect.Effect<void>) => void
  readonly #outages = new Map<string, Outage>()
  /** Nothing is logged before the layer is built, as building it fails with the problem, nor after it is closed. */
  #isOpen = false

  constructor(write: (entry: Effect.Effect<void>) => void) {
    this.#write = write
    // a first reconnect would not look like a rise otherwise
    for (const metric of reconnects.values()) write(Metric.update(metric, 0))
  }

  static readonly make: Effect.Effect<ConnectionLog, never, Scope.Scope> = Effect.contextWith(
    (context: Context.Context<never>) => scoped(() => new ConnectionLog(Effect.runForkWith(context)))
  )

  open(): void {
    this.#isOpen = true
  }

  close(): void {
    this.#isOpen = false
  }

  lost(connection: Named, error: Failure): void {
    if (!this.#isOpen || this.#outages.has(connection.key)) return
    this.#outageOf(connection)
    this.#warn("lost", "Lost the connection to Redis; connecting again.", connection, error)
  }

  refused(connection: Named, error: Failure): void {
    if (!this.#isOpen) return
    const { logged } = this.#outageOf(connection)
    const kind = isLasting(error) ? "lasting" : "passing"
    if (logged.has("lasting") || logged.has(kind)) return
    logged.add(kind)
    this.#warn("refused", "Could not connect to Redis; trying again.", connection, error)
  }

  /** It stays disconnected unless the application reconnects it. */
  ended(connection: Named, error: Failure): void {
    if (!this.#isOpen) return
    const { logged } = this.#outageOf(connection)
    if (logged.has("ended")) return
    logged.add("ended")
    const remedy = connection.isOurs
      ? "build the layer again, with a retryStrategy that never gives up"
      : "call connect() on the client, or close the layer before the client"
    this.#warn("ended", `The connection to Redis has ended for good: ${remedy}.`, connection, error)
  }

  ready({ key, name, server }: Named): void {
    const outage = this.#outages.get(key)
    if (outage === undefined) return
    this.#outages.delete(key)
    if (!this.#isOpen) return
    const outageMillis = Math.round(performance.now() - outage.since)
    const metric = reconnects.get(name)
    if (metric !== undefined) this.#write(Metric.update(metric, 1))
    const annotations = { event: "restored", connection: name, server, outageMillis }
    this.#write(Effect.annotateLogs(Effect.logInfo("Connected to Redis again."), annotations))
  }

  /** The outage of a connection, which begins now unless it has begun already. */
  #outageOf({ key }: Named): Outage {
    const outage = this.#outages.get(key) ?? { since: performance.now(), logged: new Set() }
    this.#outages.set(key, outage)
    return outage
  }

  #warn(event: "lost" | "refused" | "ended", message: string, { name, server }: Named, failure: Failure): void {
    const error = messageOf(failure)
    const annotations = { event, connection: name, server, reason: failure.reason, error }
    this.#write(Effect.annotateLogs(Effect.logWarning(`${message} ${server}: ${error}`), annotations))
  }
}
