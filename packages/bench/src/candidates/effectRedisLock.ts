import { IoRedis } from "@effect-redis-lock/ioredis"
import type { Library } from "../Candidate.ts"
import { dataCommands } from "./dataCommands.ts"
import { effectSession } from "./effectSession.ts"

export const candidate: Library = {
  insideScripts: dataCommands,
  open: ({ leaseMillis, otherPorts = [], port }) =>
    effectSession(
      IoRedis.layer({ url: `redis://127.0.0.1:${port}` }),
      leaseMillis,
      otherPorts.map((port) => IoRedis.layer({ url: `redis://127.0.0.1:${port}` }))
    )
}
