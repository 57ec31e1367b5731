import { IoRedis } from "@effect-redis-lock/ioredis"
import type { Library } from "../../Candidate.ts"
import { dataCommands } from "../../candidates/dataCommands.ts"
import { effectSession } from "../../candidates/effectSession.ts"

/** Our library, whose grants wait for every replica. */
export const candidate: Library = {
  insideScripts: dataCommands,
  open: ({ leaseMillis, port }) =>
    effectSession(IoRedis.layer({ url: `redis://127.0.0.1:${port}` }), leaseMillis, [], { replicas: "all" })
}
