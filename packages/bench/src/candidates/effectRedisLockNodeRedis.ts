import { NodeRedis } from "@effect/platform-node"
import { Layer } from "effect"
import { RedisDriver } from "effect-redis-lock"
import type { Library } from "../Candidate.ts"
import { dataCommands } from "./dataCommands.ts"
import { effectSession } from "./effectSession.ts"

export const candidate: Library = {
  insideScripts: dataCommands,
  open: ({ leaseMillis, port }) =>
    effectSession(
      Layer.provide(
        RedisDriver.layerRedis,
        NodeRedis.layer({ url: `redis://127.0.0.1:${port}`, disableOfflineQueue: true })
      ),
      leaseMillis
    )
}
