import type { RedisDriver } from "effect-redis-lock"
import type { Cluster, Redis, RedisOptions } from "ioredis"
import type { Socket } from "node:net"

/** A script to be sent, and the callbacks for its outcome. */
export interface ScriptRequest {
  readonly script: RedisDriver.RedisScript
  readonly keys: ReadonlyArray<string>
  readonly args: ReadonlyArray<string | number>
  /** Whether the script's text goes out (EVAL) or only its SHA (EVALSHA), when it is sent. */
  readonly sendsText: boolean
  onReply(reply: unknown): void
  /** The server or ioredis has rejected it. */
  onError(error: unknown): void
  /** The client's own timeout has passed. */
  expire(): void
}

/** A script that was handed to ioredis. */
export interface SentScript {
  /**
   * Turns it into a PING if ioredis has not written it yet, or writes it again: an application's own client may keep a command and
   * send it after a reconnect, long after its caller has given up. A command that was written already is not changed.
   */
  disarm(): void
}

/** Sends a script over one connection of ioredis, in the order of the calls. */
export type SendScript = (request: ScriptRequest) => SentScript

/** The first node that a cluster client asks. */
export interface StartupNode {
  readonly host?: string
  readonly port?: number
}

/**
 * How the driver uses ioredis. There are two paths: the plain one sends scripts by its public API alone, the fast one uses internals to save work
 * for every command. Everything else, from timeouts to redirections, is the same on both.
 */
export interface CommandPath {
  readonly name: "fast" | "plain"
  /** Opens our own connections. */
  readonly Connector: NonNullable<RedisOptions["Connector"]>
  readonly SentinelConnector: NonNullable<RedisOptions["Connector"]>
  /** Defaults for all our own connections, and for those through Sentinel. */
  readonly defaults: RedisOptions
  readonly sentinelDefaults: RedisOptions
  readonly makeSend: (client: Redis) => SendScript
  /** The socket of the current connection, or of the last one, if it is known. */
  readonly socketOf: (client: Redis) => Socket | undefined
  readonly startupNodeOf: (cluster: Cluster) => StartupNode | undefined
}
