import * as Effect from "effect/Effect"
import * as RcMap from "effect/RcMap"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { RedisDriver } from "effect-redis-lock"
import { addressOf, type ClusterNodes } from "./connection/ClusterNodes.ts"
import { BlockingConnections } from "./connection/BlockingConnections.ts"
import { CommandWriter } from "./command/CommandWriter.ts"
import { makeEvalOnCluster } from "./command/ClusterScriptCommand.ts"
import { hashSlot } from "./command/hashSlot.ts"
import { eachTime, scoped } from "./connection/listening.ts"
import { scanOf } from "./command/scan.ts"
import { type Warnings, warnOfServers } from "./serverWarnings.ts"
import { Subscriber } from "./subscriber.ts"
import { invalidationsOf } from "./tracking.ts"
import type { Failure } from "./failure.ts"

/**
 * The driver over the connections of a cluster, with a connection for subscriptions to each node that needs one. `sharded`: whether it has
 * sharded pub/sub, and uses it.
 */
export const makeClusterDriver = (
  nodes: ClusterNodes,
  sharded: boolean,
  warnings: Warnings
): Effect.Effect<RedisDriver.RedisDriver["Service"], Failure, Scope.Scope> =>
  Effect.gen(function* () {
    const { commandTimeoutMillis, isOurs, log } = nodes.options
    const evalUnsafe = yield* makeEvalOnCluster(nodes)
    const open = (server: string) => {
      // if it cannot connect, other nodes may serve the channels by now
      const settings = { readOnly: false, retryStrategy: null }
      const connection = nodes.at(server)!.connection.beside("subscriptions", settings, { node: server })
      return new CommandWriter(connection, commandTimeoutMillis)
    }
    const makeSubscriber = (sharded: boolean, serverOf: (channel: string) => string | undefined) =>
      scoped(() => new Subscriber({ sharded, serverOf, open, refresh: () => nodes.refresh() }))
    const subscriber = yield* makeSubscriber(sharded, (channel) => {
      const owner = nodes.ownerOf(hashSlot(channel))
      return owner === undefined ? undefined : addressOf(owner.client)
    })
    // one for each node, however many clients share the driver: what a connection has read is told to a single other one
    const subscribers = yield* RcMap.make({
      lookup: (server: string) => makeSubscriber(false, () => (nodes.at(server) === undefined ? undefined : server))
    })
    /** What one node tells, over a connection of its own. */
    const invalidationsAt = (server: string) =>
      RcMap.get(subscribers, server).pipe(
        Effect.map((subscriber) =>
          invalidationsOf({
            client: () => nodes.at(server)?.client,
            isShared: !isOurs,
            subscriber,
            listen: (onReady) =>
              nodes.watch({
                onReady: (node) => {
                  if (node === nodes.at(server)?.client) onReady()
                }
              })
          })
        ),
        Stream.unwrap
      )
    const blocking = yield* scoped(
      () =>
        new BlockingConnections((key) => {
          const slot = hashSlot(key)
          return nodes.ended ?? nodes.ownerOf(slot) ?? nodes.noneFor(`slot ${slot}`)
        })
    )
    yield* scoped(() => nodes.watch({ onClose: blocking.leave, onRefresh: () => subscriber.relocate(nodes.masters) }))
    log.open()
    yield* warnOfServers(
      [...nodes.masters].flatMap((address) => nodes.at(address) ?? []),
      warnings
    )
    return {
      eval: RedisDriver.evalOf(evalUnsafe),
      subscribe: RedisDriver.subscribeOf(subscriber.subscribe),
      scan: (pattern, type) =>
        Stream.suspend(() => Stream.fromIterable(nodes.masters)).pipe(
          Stream.flatMap((address) => {
            const node = nodes.at(address)
            if (node !== undefined) return scanOf(node)(pattern, type)
            nodes.refresh()
            return Stream.fail(nodes.ended ?? nodes.noneFor(`the slots of ${address}`))
          })
        ),
      sharesSubscriptions: true,
      publish: sharded ? "SPUBLISH" : "PUBLISH",
      slot: hashSlot,
      server: (key) => nodes.ownerOf(hashSlot(key))?.server ?? "",
      commandTimeoutMillis,
      sendBlocking: blocking.send,
      reconnects: eachTime((listener) => nodes.watch({ onReady: listener, onSuccession: listener })),
      invalidations: Stream.make(undefined).pipe(
        Stream.concat(eachTime((listener) => nodes.watch({ onSuccession: listener }))),
        Stream.switchMap(() =>
          Stream.mergeAll(Array.from(nodes.masters, invalidationsAt), { concurrency: "unbounded" })
        )
      )
    }
  })
