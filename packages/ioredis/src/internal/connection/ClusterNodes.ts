import type { Cluster, Redis } from "ioredis"
import type { CommandPath } from "../command/CommandPath.ts"
import { allowListeners, Connection } from "./Connection.ts"
import { type ConnectionLog, isLasting } from "./ConnectionLog.ts"
import { type Closable, listen } from "./listening.ts"
import { because, endedError, failed, type Failure, failureOf, hiding } from "../failure.ts"
import { CommandWriter } from "../command/CommandWriter.ts"

/** Notified of what happens to the nodes. */
export interface Watcher {
  /** A connection is up, or broken. */
  readonly onReady?: (node: Redis) => void
  readonly onClose?: (node: Redis) => void
  /** It is known anew which node serves which slot. */
  readonly onRefresh?: () => void
  /** Other nodes are masters than before: a replica, to which there may have been a connection all the time, has taken over. */
  readonly onSuccession?: () => void
}

/** Minimum delay between slot refreshes after failures. */
const REFRESH_PAUSE_MILLIS = 100

/** How long to wait before connecting again to a master, at first and at most; it doubles. */
const RECONNECT_PAUSE_MILLIS = 500
const LONGEST_RECONNECT_PAUSE_MILLIS = 5000

/** The most listeners that a driver adds to any event of a Cluster. */
const LISTENERS = 1

export interface Options {
  readonly path: CommandPath
  readonly log: ConnectionLog
  /** Whether its connections may be disconnected; otherwise the application may use them as well. */
  readonly isOurs: boolean
  readonly commandTimeoutMillis: number
}

interface Node {
  readonly writer: CommandWriter
  readonly listening: Closable
}

export const addressOf = (node: Redis): string => `${node.options.host}:${node.options.port}`

const shown = (masters: ReadonlySet<string>): string => [...masters].toSorted().join(" ")

/**
 * Which node serves which slot, according to ioredis' Cluster, and the Cluster's own connections to the nodes.
 *
 * Commands go to these connections and not through the Cluster, which would resend a command to another node if the connection
 * broke before the reply, and would send a command without a node to any node.
 */
export class ClusterNodes {
  readonly cluster: Cluster
  readonly options: Options
  readonly #watchers = new Set<Watcher>()
  readonly #listening: Closable
  readonly #nodes = new Map<string, Node>()
  #refreshedAt = Number.NEGATIVE_INFINITY
  #timer: ReturnType<typeof setTimeout> | undefined
  /** How long to wait before connecting again to the nodes that ioredis has dropped, as their connections were lost. */
  readonly #pauses = new Map<string, number>()
  /** The nodes of slots according to redirections since the last refresh. */
  readonly #moved = new Map<number, string>()
  /** The addresses of the masters at the last refresh. */
  #masters: string
  /** Why the slots could not be refreshed, or why the nodes are gone. */
  #failure: Failure | undefined

  /** Its status does not show this: ioredis sets it back to "close" for each node that is still to be dropped. */
  #hasEnded: boolean

  constructor(cluster: Cluster, options: Options) {
    this.cluster = cluster
    this.#hasEnded = cluster.status === "end"
    this.options = options
    this.#masters = shown(this.masters)
    allowListeners(cluster, LISTENERS)
    for (const node of cluster.nodes("all")) this.#add(node)
    this.#listening = listen(cluster, {
      "+node": this.#add,
      "-node": this.#remove,
      "node error": this.#onNodeError,
      refresh: this.#onRefresh,
      end: this.#onEnd,
      connecting: this.#onConnecting
    })
  }

  close(): void {
    clearTimeout(this.#timer)
    allowListeners(this.cluster, -LISTENERS)
    this.#listening.close()
    for (const { listening, writer } of this.#nodes.values()) {
      listening.close()
      writer.close()
      writer.connection.close()
    }
  }

  watch(watcher: Watcher): Closable {
    this.#watchers.add(watcher)
    return { close: () => this.#watchers.delete(watcher) }
  }

  /** The master that serves the slot, unless there is no connection to it. */
  ownerOf(slot: number): CommandWriter | undefined {
    const address = this.#moved.get(slot) ?? this.cluster.slots[slot]?.[0]
    return address === undefined ? undefined : this.at(address)
  }

  /** The addresses of the masters, also of those to which there is no connection now: ioredis forgets such a node until its next refresh. */
  get masters(): ReadonlySet<string> {
    const { slots } = this.cluster
    return new Set([...this.cluster.nodes("master").map(addressOf), ...slots.flatMap(([master]) => master ?? [])])
  }

  at(address: string): CommandWriter | undefined {
    return this.#nodes.get(address)?.writer
  }

  /** Where a node is found here that calls itself this: behind a NAT (`natMap`) that is another address. */
  reachedAs(address: string): string {
    const { natMap } = this.cluster.options
    const here = typeof natMap === "function" ? natMap(address) : natMap?.[address]
    return here ? `${here.host}:${here.port}` : address
  }

  /** The failure of all commands once ioredis no longer reconnects the cluster by itself. */
  get ended(): Failure | undefined {
    return this.#hasEnded ? endedError("the cluster", this.options.isOurs, this.#failure) : undefined
  }

  /** The failure of a command for slots that no node serves. */
  noneFor(slots: string): Failure {
    const failure = this.#failure
    if (failure !== undefined && isLasting(failure)) return failure
    return failed("NotConnected", `no node is known to serve ${slots}${because(failure)}`)
  }

  /** A node has redirected: another one serves the slot now. */
  moved(slot: number, address: string): void {
    if (this.#nodes.has(address)) this.#moved.set(slot, address)
    this.refresh()
  }

  /** Refreshes the slots soon; the Cluster emits "refresh" when they are known. */
  refresh(): void {
    this.#timer ??= setTimeout(
      () => {
        this.#timer = undefined
        this.#refreshedAt = performance.now()
        // a cluster that is reconnecting refreshes them anyway
        if (this.cluster.status === "ready")
          this.cluster.refreshSlotsCache(this.options.isOurs ? this.#onRefreshEnd : undefined)
      },
      Math.max(0, this.#refreshedAt + REFRESH_PAUSE_MILLIS - performance.now())
    ).unref()
  }

  /**
   * All nodes may have other addresses by now. ioredis asks the startup nodes for them only once it has dropped all others, and it never drops those
   * to which it has not connected, such as replicas.
   */
  readonly #onRefreshEnd = (error?: Error | null): void => {
    const nodes = this.cluster.nodes()
    if (!error || this.cluster.status !== "ready" || nodes.length === 0) return
    if (nodes.every(({ status }) => status !== "ready")) this.cluster.disconnect(true)
  }

  readonly #add = (redis: Redis): void => {
    const address = addressOf(redis)
    // ioredis 6 does not tell of a node that it drops and adds again before the connection has ended
    const former = this.#nodes.get(address)
    former?.writer.close()
    const { commandTimeoutMillis, isOurs, log, path } = this.options
    const connection = new Connection(redis, {
      path,
      log,
      node: address,
      isOurs,
      isReplaceable: true,
      // the cluster closes connections that it does not need
      isWanted: () => this.cluster.nodes().includes(redis)
    })
    const writer = new CommandWriter(connection, commandTimeoutMillis)
    const pause = this.#pauses.get(address) ?? (former && RECONNECT_PAUSE_MILLIS)
    if (pause !== undefined) {
      this.#pauses.set(address, Math.min(2 * pause, LONGEST_RECONNECT_PAUSE_MILLIS))
      // ioredis connects only for the next command, but holders of locks there need the connection to hear of a loss
      const reconnect = () => {
        if (redis.status === "wait" && this.cluster.nodes("master").includes(redis)) redis.connect().catch(() => {})
      }
      // jittered: all processes may have lost theirs at the same moment
      setTimeout(reconnect, pause * (1 + Math.random() / 2)).unref()
    }
    // after those of the connection and the writer: they know of it when a watcher is told
    const listening = listen(redis, {
      ready: () => {
        this.#pauses.delete(address)
        for (const { onReady } of this.#watchers) onReady?.(redis)
      },
      close: () => {
        for (const { onClose } of this.#watchers) onClose?.(redis)
      }
    })
    this.#nodes.set(address, { writer, listening })
  }

  #named(server: string) {
    return { key: "cluster", name: "commands", server, isOurs: this.options.isOurs }
  }

  readonly #onNodeError = (error: unknown, server: string): void => {
    const failure = failureOf(error, hiding([this.cluster.options.redisOptions?.password]))
    this.#failure = failure
    // a transient failure is reported by the node's own connection
    if (isLasting(failure)) this.options.log.refused(this.#named(server), failure)
  }

  readonly #onEnd = (): void => {
    this.#hasEnded = true
    this.options.log.ended(this.#named("the cluster"), this.ended!)
  }

  readonly #onConnecting = (): void => {
    this.#hasEnded = false
  }

  readonly #onRefresh = (): void => {
    this.#moved.clear()
    this.#failure = undefined
    this.options.log.ready(this.#named("the cluster"))
    const { masters } = this
    for (const address of this.#pauses.keys()) if (!masters.has(address)) this.#pauses.delete(address)
    const shownMasters = shown(masters)
    const isSuccession = shownMasters !== this.#masters
    this.#masters = shownMasters
    for (const { onRefresh, onSuccession } of this.#watchers) {
      if (isSuccession) onSuccession?.()
      onRefresh?.()
    }
  }

  readonly #remove = (redis: Redis): void => {
    const address = addressOf(redis)
    const node = this.#nodes.get(address)
    // it may have been replaced already
    if (node?.writer.client === redis) {
      const { failure } = node.writer.connection
      // ioredis 5.3 emits no "node error" for a changed password
      if (failure !== undefined && isLasting(failure)) this.#failure = failure
      this.#nodes.delete(address)
      if (!this.#pauses.has(address)) this.#pauses.set(address, RECONNECT_PAUSE_MILLIS)
      node.writer.close()
    }
    this.refresh()
  }
}
