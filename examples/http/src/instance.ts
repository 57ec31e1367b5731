/**
 * One instance of the service: `instance.js PORT`. `POST /orders/:order/shipment` ships an order, which no two instances may do at once.
 */
import { NodeHttpServer, NodeRuntime } from "@effect/platform-node"
import { IoRedis } from "@effect-redis-lock/ioredis"
import { Console, Effect, Layer } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { Lock } from "effect-redis-lock"
import { createServer } from "node:http"

const port = Number(process.argv[2])

/**
 * Printing the label, calling the carrier: what takes its time. A real service first checks, under the lock, whether the order is shipped
 * already. This one does not, and ships it again for a request that comes later.
 */
const ship = (order: string) =>
  Effect.andThen(Console.log(`shipping ${order}`), Effect.sleep("1 second")).pipe(
    Lock.withLock(`order:${order}`, { waitTime: "100 millis" })
  )

const shipment = HttpRouter.add(
  "POST",
  "/orders/:order/shipment",
  Effect.gen(function* () {
    const { order = "" } = yield* HttpRouter.params
    return yield* ship(order).pipe(
      Effect.as(HttpServerResponse.text(`${order} is shipped\n`)),
      Effect.catchTags({
        // another instance is shipping it
        LockTimeout: () => answer(409, `${order} is being shipped`),
        // The message says what is wrong with Redis; it is for the log, not for the client. A transient error came before the shipment;
        // one that is not may also say that the release of its lock was not confirmed, so no 503, after which clients ask again.
        LockStoreError: (error) =>
          Effect.andThen(
            Effect.logError(error.message),
            error.isTransient ? answer(503, "try again later") : answer(500, "look at the order")
          ),
        // whether the shipment was made must be looked up
        LockLost: (error) => Effect.andThen(Effect.logError(error.message), answer(500, "look at the order")),
        // the name is made of what the client sent
        InvalidLockName: (error) => answer(400, error.message)
      })
    )
  })
)

const answer = (status: number, text: string) => Effect.succeed(HttpServerResponse.text(`${text}\n`, { status }))

// the client of the locks is built once, outlives the requests, and is closed after the server
const service = HttpRouter.serve(shipment, { disableLogger: true }).pipe(
  Layer.provide(NodeHttpServer.layer(createServer, { port, host: "127.0.0.1" })),
  Layer.provide(IoRedis.layerRedisLock({ urls: [process.env["REDIS_URL"] ?? "redis://localhost:6379"] }))
)

NodeRuntime.runMain(Layer.launch(service))
