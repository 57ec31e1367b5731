import * as Duration from "effect/Duration"
import { Command, type RedisOptions } from "ioredis"
import type { CommandPath } from "./CommandPath.ts"
import type { Address } from "./options.ts"

/** Whether a connection of ioredis is ready only after its SELECT was answered: since 6, without a ready check as well. */
export const awaitsHandshake = "setReplyContext" in Command.prototype

/** Shared by all layers with connections of their own. An application's own `Connector` wins. */
export const settingsOf = (
  path: CommandPath,
  ioredis: RedisOptions,
  connectTimeout: Duration.Duration
): RedisOptions & { readonly replyMapping: "legacy" } => ({
  Connector: ioredis.sentinels ? path.SentinelConnector : path.Connector,
  ...path.defaults,
  // ioredis would check only once a second whether a restarted server still loads its data: places in fair queues would be lost
  maxLoadingRetryTime: 100,
  ...ioredis,
  // ioredis would speak plain text to the master otherwise
  ...(ioredis.sentinels && ioredis.tls ? { enableTLSForSentinelMode: true } : {}),
  connectTimeout: Duration.toMillis(connectTimeout),
  lazyConnect: true,
  // A command that waits for a connection, or is sent again after one was lost, may take a lock for a caller that
  // has long given up.
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
  autoResendUnfulfilledCommands: false,
  // what would change keys or replies
  keyPrefix: "",
  stringNumbers: false,
  replyMapping: "legacy",
  // ioredis 5 would be ready before it knows whether the database is refused
  ...(awaitsHandshake || Number(ioredis.db ?? 0) === 0 ? {} : { enableReadyCheck: true })
})

/** Where the server is, over the other options of ioredis. */
export const at = (address: Address, ioredis: RedisOptions): RedisOptions => {
  const tls = address.tls ? { ...ioredis.tls, ...address.tls } : ioredis.tls
  const { path: _, ...others } = ioredis as RedisOptions & { readonly path?: string }
  return { ...(address.host === undefined ? ioredis : others), ...address, ...(tls ? { tls } : {}) }
}

/** For connections that only subscribe: the subscriber subscribes again by itself after a reconnect. */
export const forSubscriptions: RedisOptions = {
  lazyConnect: false,
  autoResubscribe: false,
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
  autoResendUnfulfilledCommands: false
}
