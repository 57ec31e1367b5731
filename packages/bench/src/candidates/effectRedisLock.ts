import { IoRedis } from "@effect-redis-lock/ioredis"
import type { Candidate } from "../Candidate.ts"
import { effectSession, insideScripts } from "./effectSession.ts"

export const candidate: Candidate = {
  insideScripts,
  open: ({ leaseMillis, port }) => effectSession(IoRedis.layer({ url: `redis://127.0.0.1:${port}` }), leaseMillis)
}
