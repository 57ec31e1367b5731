import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Cluster, Redis } from "ioredis"
import { Outlet } from "./Outlet.ts"

/** Somebody who must know what becomes of the connections to the nodes. */
export interface Watcher {
  readonly onReady: (node: Redis) => void
  readonly onClose: (node: Redis) => void
}

/** So long at least between two questions about the slots that failures have led to. */
const REFRESH_PAUSE_MILLIS = 100

interface Node {
  readonly outlet: Outlet
  readonly onReady: () => void
  readonly onClose: () => void
}

export const addressOf = (node: Redis): string => `${node.options.host}:${node.options.port}`

/**
 * Which node serves which slot, as ioredis' Cluster has last heard it, and the Cluster's own connections to the nodes.
 *
 * Commands go to these connections and not through the Cluster: it sends a command again, to another node, whose
 * connection broke before the reply came, and one that has no node to go to it sends to any.
 */
export class ClusterNodes {
  readonly cluster: Cluster
  readonly watchers = new Set<Watcher>()
  readonly #nodes = new Map<string, Node>()
  #refreshedAt = Number.NEGATIVE_INFINITY
  #timer: ReturnType<typeof setTimeout> | undefined

  /** As of an outlet. */
  readonly patienceMillis: number | undefined

  private constructor(cluster: Cluster, patienceMillis: number | undefined) {
    this.cluster = cluster
    this.patienceMillis = patienceMillis
  }

  static make(cluster: Cluster, patienceMillis: number | undefined): Effect.Effect<ClusterNodes, never, Scope.Scope> {
    return Effect.acquireRelease(
      Effect.sync(() => {
        const nodes = new ClusterNodes(cluster, patienceMillis)
        for (const node of cluster.nodes("all")) nodes.#add(node)
        cluster.on("+node", nodes.#add).on("-node", nodes.#remove)
        return nodes
      }),
      (nodes) =>
        Effect.sync(() => {
          clearTimeout(nodes.#timer)
          cluster.off("+node", nodes.#add).off("-node", nodes.#remove)
          for (const { onClose, onReady, outlet } of nodes.#nodes.values()) {
            outlet.client.off("ready", onReady).off("close", onClose)
            outlet.close()
          }
        })
    )
  }

  /** The master that serves the slot, unless there is no connection to it. */
  ownerOf(slot: number): Outlet | undefined {
    const address = this.cluster.slots[slot]?.[0]
    return address === undefined ? undefined : this.at(address)
  }

  get masters(): ReadonlyArray<Outlet> {
    return this.cluster.nodes("master").flatMap((node) => this.at(addressOf(node)) ?? [])
  }

  at(address: string): Outlet | undefined {
    return this.#nodes.get(address)?.outlet
  }

  /** A node said that another one serves the slot now. */
  moved(slot: number, address: string): void {
    if (this.#nodes.has(address)) this.cluster.slots[slot] = [address]
    this.refresh()
  }

  /** Asks the cluster who serves what, soon; the Cluster's event "refresh" tells when it is known. */
  refresh(): void {
    this.#timer ??= setTimeout(
      () => {
        this.#timer = undefined
        this.#refreshedAt = performance.now()
        // while it reconnects by itself it asks anyway
        if (this.cluster.status === "ready") this.cluster.refreshSlotsCache()
      },
      Math.max(0, this.#refreshedAt + REFRESH_PAUSE_MILLIS - performance.now())
    ).unref()
  }

  readonly #add = (redis: Redis): void => {
    const node: Node = {
      outlet: new Outlet(redis, this.patienceMillis),
      onReady: () => {
        for (const { onReady } of this.watchers) onReady(redis)
      },
      onClose: () => {
        for (const { onClose } of this.watchers) onClose(redis)
      }
    }
    this.#nodes.set(addressOf(redis), node)
    redis.on("ready", node.onReady).on("close", node.onClose)
  }

  readonly #remove = (redis: Redis): void => {
    const address = addressOf(redis)
    // it may have been replaced already
    if (this.at(address)?.client === redis) this.#nodes.delete(address)
    this.refresh()
  }
}
