/**
 * A master that becomes a replica and keeps its connections, while its address leads to the new master.
 */
import { RedisServer } from "@effect-redis-lock/testing"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Lock } from "effect-redis-lock"
import { type AddressInfo, connect, createServer, type Socket } from "node:net"
import { client, clientOver } from "../kit/clients.ts"
import { recording } from "../kit/connectionLog.ts"
import { eventually } from "../kit/eventually.ts"
import { storeError } from "../kit/exits.ts"
import { enter, queueUp } from "../kit/sections.ts"
import { bare } from "../kit/server/bareRedis.ts"
import { lockKey, renewed } from "../kit/server/conditions.ts"

/** An address that can lead new connections elsewhere, as a name in DNS does; those that stand stay where they are. */
const movingAddress = (first: { readonly port: number }) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      let { port } = first
      const sockets = new Set<Socket>()
      const server = createServer((incoming) => {
        const outgoing = connect(port, "127.0.0.1")
        for (const [socket, other] of [
          [incoming, outgoing],
          [outgoing, incoming]
        ] as const) {
          sockets.add(socket)
          socket.on("error", () => {}).on("close", () => other.destroy())
          socket.pipe(other)
        }
      })
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
      return {
        url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`,
        leadTo: (next: { readonly port: number }) => {
          port = next.port
        },
        close: () => {
          server.close()
          for (const socket of sockets) socket.destroy()
        }
      }
    }),
    ({ close }) => Effect.sync(close)
  )

/** A replica, and its master. */
const pair = Effect.gen(function* () {
  const master = yield* RedisServer.start()
  const replica = yield* RedisServer.start()
  const atMaster = yield* bare(master)
  const atReplica = yield* bare(replica)
  yield* Effect.promise(() => atReplica.replicaof("127.0.0.1", master.port))
  yield* eventually(
    "the replica has its master's data",
    () => atReplica.info("replication"),
    (info) => info.includes("master_link_status:up")
  )
  return { master, replica, atMaster, atReplica }
})

describe("a master that becomes a replica", { concurrent: true }, () => {
  it.live(
    "After a failover behind one address holders keep their locks, and waiters are let in by the new master",
    () =>
      Effect.gen(function* () {
        const { atMaster, atReplica, master, replica } = yield* pair
        const address = yield* movingAddress(master)
        const log = recording()
        const holder = yield* enter(
          yield* Effect.provide(client(address, { watchdogLeaseTime: "6 seconds" }), log.layer),
          "report"
        )
        const waiter = yield* queueUp(yield* client(address), "report")
        const bystander = yield* client(address)
        yield* bystander.run(Lock.withLock(Effect.void, "other"))
        yield* lockKey(atReplica, "report", "there")
        address.leadTo(replica)
        yield* Effect.promise(() => atReplica.replicaof("NO", "ONE"))
        yield* Effect.promise(() => atMaster.replicaof("127.0.0.1", replica.port))
        const error = storeError(
          yield* Effect.exit(bystander.run(Lock.withLock(Effect.void, "other", { waitTime: 0 })))
        )
        assert.strictEqual(error.reason, "ReadOnly")
        assert.isTrue(error.isTransient)
        assert.strictEqual(
          yield* bystander.run(Lock.withLock(Effect.succeed("in"), "other", { waitTime: "1 minute" })),
          "in"
        )
        yield* renewed(atReplica, "report", 2)
        yield* holder.finish
        const next = yield* waiter.entered
        yield* next.finish
        assert.deepStrictEqual(log.logged(), ["Warn lost commands", "Info restored commands"])
        assert.strictEqual(log.lines[0]!["reason"], "ReadOnly")
        assert.include(log.lines[0]!.message, "READONLY")
      }).pipe(Effect.scoped)
  )

  it.live("A replica that is given as the server is connected to again at most once a second", () =>
    Effect.gen(function* () {
      const { atReplica, replica } = yield* pair
      const connections = async () =>
        Number(/total_connections_received:(\d+)/.exec(await atReplica.info("stats"))?.[1])
      const mine = yield* client(replica)
      const before = yield* Effect.promise(connections)
      const start = performance.now()
      let refusals = 0
      while (refusals < 100 || performance.now() - start < 2500) {
        const error = storeError(yield* Effect.exit(mine.run(Lock.withLock(Effect.void, "report", { waitTime: 0 }))))
        assert.isTrue(error.isTransient, error.message)
        if (error.reason === "ReadOnly") refusals++
      }
      const made = (yield* Effect.promise(connections)) - before
      assert.isAtLeast(made, 1)
      assert.isAtMost(made, 1 + (performance.now() - start) / 1000)
    }).pipe(Effect.scoped)
  )

  it.live("An application's own client is not disconnected when its server becomes a replica", () =>
    Effect.gen(function* () {
      const { replica } = yield* pair
      const redis = yield* bare(replica)
      const mine = yield* clientOver(redis)
      const id = yield* Effect.promise(() => redis.client("ID"))
      const error = storeError(yield* Effect.exit(mine.run(Lock.withLock(Effect.void, "report", { waitTime: 0 }))))
      assert.strictEqual(error.reason, "ReadOnly")
      assert.strictEqual(yield* Effect.promise(() => redis.client("ID")), id)
    }).pipe(Effect.scoped)
  )
})
