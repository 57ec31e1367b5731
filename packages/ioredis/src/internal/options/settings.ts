import { Command, type RedisOptions } from "ioredis"
import type { CommandPath } from "../command/CommandPath.ts"

/** Only what is given: an option that is undefined would take the place of one of the application's. */
export const given = <A extends object>(options: A): { [K in keyof A]?: NonNullable<A[K]> } =>
  Object.fromEntries(Object.entries(options).filter(([, value]) => value != null)) as never

/** Whether ioredis reports a connection as ready only after the reply to SELECT: since version 6, even without a ready check. */
export const awaitsHandshake = "setReplyContext" in Command.prototype

/** Overload resolution needs to know the kind of replies. */
export type Settings = RedisOptions & { readonly replyMapping: "legacy" }

/** Shared by all layers with connections of their own. An application's own `Connector` wins. */
export const settingsOf = (path: CommandPath, ioredis: RedisOptions, connectTimeoutMillis: number): Settings => ({
  Connector: ioredis.sentinels ? path.SentinelConnector : path.Connector,
  ...path.defaults,
  // ioredis would check only once a second whether a restarted server is still loading: places in fair queues would be lost
  maxLoadingRetryTime: 100,
  ...ioredis,
  connectTimeout: ioredis.connectTimeout ?? connectTimeoutMillis,
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
