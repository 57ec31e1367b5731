import { IoRedis } from "@effect-redis-lock/ioredis"
import type { Library } from "../Candidate.ts"
import { effectSession, insideScripts } from "./effectSession.ts"

export const candidate: Library = {
  insideScripts,
  open: ({ leaseMillis, port }) => effectSession(IoRedis.layer({ url: `redis://127.0.0.1:${port}` }), leaseMillis)
}
