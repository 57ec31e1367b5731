/**
 * A Redis Cluster for a test: masters and replicas as `redis-server` processes on free ports of 127.0.0.1. Each can be killed,
 * paused and restarted, and slots can be moved between them.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { join } from "node:path"
import { command, failingAs, StepFailed } from "./internal/command.ts"
import { temporaryDirectory } from "./internal/directory.ts"
import { eventually, inSync } from "./internal/eventually.ts"
import * as RedisServer from "./RedisServer.ts"

/** How to start a cluster. All fields are optional. */
export interface Options {
  /** How many masters share the slots, at least 3 for failover to work. Default: 3. */
  readonly masters?: number | undefined
  /** How many replicas each master has. Default: 0. */
  readonly replicas?: number | undefined
  /** How long a node may be silent before it counts as failed; a replica takes over one or two seconds later. Default: 2 seconds. */
  readonly nodeTimeout?: Duration.Input | undefined
  /** Additional arguments of every node. Default: none. */
  readonly args?: ReadonlyArray<string> | undefined
  /** The program, as in {@link RedisServer.Options}. Default: `redis-server`, else `valkey-server`. */
  readonly binary?: string | undefined
}

/** A running cluster. */
export interface RedisCluster {
  /**
   * The nodes: first the initial masters, then the replicas. A node keeps its identity through a kill and restart, but none
   * of its data.
   */
  readonly nodes: ReadonlyArray<RedisServer.RedisServer>
  /** The URL of each node: the seeds for a client. */
  readonly urls: ReadonlyArray<string>
  /** The hash slot of a key, as the cluster computes it. Fails if no node answers. */
  readonly slotOf: (key: string) => Effect.Effect<number, RedisClusterError>
  /** The master that serves a slot now, in the view of most nodes. Waits for one; fails if there is none for 30 seconds. */
  readonly ownerOf: (slot: number) => Effect.Effect<RedisServer.RedisServer, RedisClusterError>
  /** Moves a slot with its keys to another master, as `redis-cli --cluster reshard` does. Fails if a step is refused. */
  readonly moveSlot: (slot: number, to: RedisServer.RedisServer) => Effect.Effect<void, RedisClusterError>
  /**
   * Does the same in two halves: the outer effect moves the keys and leaves the slot open (`ASK`, `TRYAGAIN`), the inner closes it.
   */
  readonly beginMoveSlot: (
    slot: number,
    to: RedisServer.RedisServer
  ) => Effect.Effect<Effect.Effect<void, RedisClusterError>, RedisClusterError>
  /** Waits until every running node reports `cluster_state:ok`. Fails after 30 seconds. */
  readonly ok: Effect.Effect<void, RedisClusterError>
}

/** The cluster could not be formed, or refused a change; the message names the step. */
export class RedisClusterError extends Schema.TaggedError<RedisClusterError>(
  "@effect-redis-lock/testing/RedisClusterError"
)("RedisClusterError", { message: Schema.String }) {}

const SLOTS = 16384
const PATIENCE_MILLIS = 30_000
const VOTE_MILLIS = 1000

const surfacing = failingAs((message) => new RedisClusterError({ message }))

/** A field of a node's CLUSTER INFO. */
const clusterInfo = (node: RedisServer.RedisServer) =>
  Effect.map(
    command(node, "CLUSTER", "INFO"),
    (text) => (field: string) => new RegExp(`^${field}:(.*?)\\r?$`, "m").exec(String(text))?.[1]
  )

const idOf = (node: RedisServer.RedisServer) => Effect.map(command(node, "CLUSTER", "MYID"), String)

/**
 * Starts a cluster and waits until every node serves, which takes about three seconds, as a new node waits two before it
 * accepts writes. All nodes are stopped when the scope closes.
 *
 * Fails like {@link RedisServer.start}, and with `RedisClusterError` if the nodes do not find each other.
 *
 * **Example**
 *
 * ```ts
 * import { RedisCluster } from "@effect-redis-lock/testing"
 * import { Effect } from "effect"
 *
 * const program = Effect.scoped(Effect.gen(function*() {
 *   const cluster = yield* RedisCluster.start({ replicas: 1, nodeTimeout: "1 second" })
 *   const slot = yield* cluster.slotOf("orders")
 *   const master = yield* cluster.ownerOf(slot)
 *   yield* master.kill // its replica takes over
 *   yield* master.restart // and becomes the replica
 *   yield* cluster.ok
 * }))
 *
 * await Effect.runPromise(program)
 * ```
 */
export const start: (
  options?: Options
) => Effect.Effect<RedisCluster, RedisServer.RedisServerError | RedisClusterError, Scope.Scope> = Effect.fnUntraced(
  function* (options?: Options) {
    const masterCount = options?.masters ?? 3
    const replicaCount = masterCount * (options?.replicas ?? 0)
    const nodeTimeout = Duration.toMillis(Duration.fromInputUnsafe(options?.nodeTimeout ?? "2 seconds"))
    // outlives the processes, so that a restarted node keeps its identity
    const directory = yield* temporaryDirectory("redis-cluster")

    const nodes = yield* Effect.forEach(
      Array.from({ length: masterCount + replicaCount }, (_, index) => index),
      (index) =>
        RedisServer.start({
          binary: options?.binary,
          args: [
            ...["--cluster-enabled", "yes", "--cluster-config-file", join(directory, `${index}.conf`)],
            ...["--cluster-node-timeout", String(nodeTimeout), "--cluster-announce-ip", "127.0.0.1"],
            // a replica takes over however long it has been cut off
            ...["--cluster-replica-validity-factor", "0", "--repl-diskless-sync-delay", "0"],
            ...(options?.args ?? [])
          ]
        }),
      { concurrency: 3 }
    )
    const masters = nodes.slice(0, masterCount)
    const replicas = nodes.slice(masterCount)

    const everyNode = (f: (node: RedisServer.RedisServer) => Effect.Effect<boolean, unknown>) =>
      Effect.map(Effect.forEach(nodes, f, { concurrency: "unbounded" }), (answers) => answers.every(Boolean))

    yield* Effect.forEach(masters, (master, index) => {
      const first = Math.ceil((index * SLOTS) / masterCount)
      const last = Math.ceil(((index + 1) * SLOTS) / masterCount) - 1
      // ADDSLOTSRANGE is not known before Redis 7
      const slots = Array.from({ length: last - first + 1 }, (_, offset) => first + offset)
      return command(master, "CLUSTER", "ADDSLOTS", ...slots)
    })
    yield* Effect.forEach(nodes, (node, index) => command(node, "CLUSTER", "SET-CONFIG-EPOCH", index + 1))
    yield* Effect.forEach(nodes.slice(1), (node) => command(nodes[0]!, "CLUSTER", "MEET", node.host, node.port))
    yield* eventually(
      "every node knows every other",
      everyNode((node) => Effect.map(clusterInfo(node), (info) => info("cluster_known_nodes") === String(nodes.length)))
    )
    yield* Effect.forEach(replicas, (replica, index) =>
      Effect.flatMap(idOf(masters[index % masterCount]!), (id) => {
        // gossip may not have told the replica yet that this is a master
        const replicate = Effect.as(command(replica, "CLUSTER", "REPLICATE", id), true)
        return eventually("every replica has its master", replicate)
      })
    )
    yield* eventually(
      "every node serves, and every slot is served",
      everyNode((node) =>
        Effect.map(
          clusterInfo(node),
          (info) => info("cluster_state") === "ok" && info("cluster_slots_ok") === String(SLOTS)
        )
      )
    )
    yield* inSync(replicas)

    const ownerNow = Effect.fnUntraced(function* (slot: number) {
      const votes = new Map<number, number>()
      const views = yield* Effect.forEach(
        nodes,
        (node) =>
          command(node, "CLUSTER", "SLOTS").pipe(
            // a paused node does not count
            Effect.timeout(VOTE_MILLIS),
            Effect.orElseSucceed(() => [])
          ),
        { concurrency: "unbounded" }
      )
      for (const ranges of views as ReadonlyArray<ReadonlyArray<[number, number, [string, number]]>>) {
        for (const [first, last, [, port]] of ranges) {
          if (first <= slot && slot <= last) votes.set(port, (votes.get(port) ?? 0) + 1)
        }
      }
      const [port] = [...votes].sort(([, a], [, b]) => b - a)[0] ?? []
      const owner = nodes.find((node) => node.port === port)
      if (owner === undefined) return yield* new StepFailed({ message: `No node serves slot ${slot}.` })
      return owner
    })
    // on a busy machine all nodes may be slower than a vote waits
    const ownerOf = (slot: number) =>
      Effect.retry(ownerNow(slot), Schedule.upTo(Schedule.spaced(100), { duration: PATIENCE_MILLIS }))

    const beginMoveSlot = Effect.fnUntraced(function* (slot: number, to: RedisServer.RedisServer) {
      const from = yield* ownerOf(slot)
      const fromId = yield* idOf(from)
      const toId = yield* idOf(to)
      yield* command(to, "CLUSTER", "SETSLOT", slot, "IMPORTING", fromId)
      yield* command(from, "CLUSTER", "SETSLOT", slot, "MIGRATING", toId)
      const moveKeys = Effect.gen(function* () {
        while (true) {
          const keys = (yield* command(from, "CLUSTER", "GETKEYSINSLOT", slot, 100)) as ReadonlyArray<string>
          if (keys.length === 0) return
          yield* command(from, "MIGRATE", to.host, to.port, "", 0, 5000, "KEYS", ...keys)
        }
      })
      yield* moveKeys
      return Effect.gen(function* () {
        yield* moveKeys
        // the new owner first, so that the slot is never without one
        const others = nodes.filter((node) => node !== to && node !== from)
        for (const node of [to, from]) yield* command(node, "CLUSTER", "SETSLOT", slot, "NODE", toId)
        // the others learn of it by gossip anyway; replicas refuse the command
        yield* Effect.forEach(others, (node) => Effect.ignore(command(node, "CLUSTER", "SETSLOT", slot, "NODE", toId)))
      }).pipe(surfacing)
    })

    return {
      nodes,
      urls: nodes.map((node) => node.url),
      slotOf: (key) =>
        surfacing(
          Effect.firstSuccessOf(nodes.map((node) => Effect.map(command(node, "CLUSTER", "KEYSLOT", key), Number)))
        ),
      ownerOf: (slot) => surfacing(ownerOf(slot)),
      beginMoveSlot: (slot, to) => surfacing(beginMoveSlot(slot, to)),
      moveSlot: (slot, to) => surfacing(Effect.flatten(beginMoveSlot(slot, to))),
      ok: surfacing(
        eventually(
          "every node that runs serves",
          everyNode((node) =>
            clusterInfo(node).pipe(
              Effect.map((info) => info("cluster_state") === "ok"),
              Effect.catch((error) => Effect.succeed(/closed|ECONNREFUSED/.test(error.message)))
            )
          )
        )
      )
    } satisfies RedisCluster
  },
  surfacing
)
