import * as Duration from "effect/Duration"
import { Command, type RedisOptions } from "ioredis"
import type { CommandPath } from "../command/CommandPath.ts"
import type { Address } from "./options.ts"

/** Whether ioredis reports a connection as ready only after the reply to SELECT: since version 6, even without a ready check. */
export const awaitsHandshake = "setReplyContext" in Command.prototype

/** Shared by all layers with connections of their own. An application's own `Connector` wins. */
export const settingsOf = (
  path: CommandPath,
  ioredis: RedisOptions,
  connectTimeout: Duration.Duration
): RedisOptions & { readonly replyMapping: "legacy" } => ({
  Connector: ioredis.sentinels ? path.SentinelConnector : path.Connector,
  ...path.defaults,
  // ioredis would check only once a second whether a restarted server is still loading: places in fair queues would be lost
  maxLoadingRetryTime: 100,
  ...ioredis,
  connectTimeout: ioredis.connectTimeout ?? Duration.toMillis(connectTimeout),
  // otherwise ioredis would connect to the master without TLS
  ...(ioredis.sentinels && ioredis.tls ? { enableTLSForSentinelMode: true } : {}),
  lazyConnect: true,
  // A command that waits for a connection, or is sent again after one was lost, may take a lock for a caller that
  // has long given up.
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
  autoResendUnfulfilledCommands: false,
  // options that would change keys or replies
  keyPrefix: "",
  stringNumbers: false,
  replyMapping: "legacy",
  // ioredis 5 would report ready before it knows whether the database is refused
  ...(awaitsHandshake || Number(ioredis.db ?? 0) === 0 ? {} : { enableReadyCheck: true })
})

/** The other options of ioredis, overridden by the address of the server. */
export const at = (address: Address, ioredis: RedisOptions): RedisOptions => {
  const tls = address.tls ? { ...ioredis.tls, ...address.tls } : ioredis.tls
  const { path: _, ...others } = ioredis as RedisOptions & { readonly path?: string }
  return { ...(address.host === undefined ? ioredis : others), ...address, ...(tls ? { tls } : {}) }
}

/** For connections that only subscribe: the subscriber itself resubscribes after a reconnect. */
export const forSubscriptions: RedisOptions & { readonly commandTimeout: undefined } = {
  // over RESP3 ioredis does not pass on what the server reports about keys
  protocol: 2,
  lazyConnect: false,
  autoResubscribe: false,
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
  autoResendUnfulfilledCommands: false,
  // an application's is meant for its own commands; whether these connections are alive is watched here
  commandTimeout: undefined
}
