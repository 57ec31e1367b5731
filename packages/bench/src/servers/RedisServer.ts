import { RedisServer as Server } from "@effect-redis-lock/testing"
import { Effect, Exit, Scope } from "effect"
import { Redis } from "ioredis"

/**
 * A Redis of our own, for one run of the benchmark; it ends with this process, however that ends.
 */
export interface RedisServer {
  readonly port: number
  readonly version: string
  readonly clear: () => Promise<void>
  readonly stop: () => Promise<void>
}

/** Without persistence, unless the arguments say otherwise. */
export const startRedis = async (args: ReadonlyArray<string> = []): Promise<RedisServer> => {
  const scope = Scope.makeUnsafe()
  const server = await Effect.runPromise(Scope.provide(Server.start({ binary: "redis-server", args }), scope))
  const client = new Redis(server.url)
  return {
    port: server.port,
    version: server.name.replace("redis-server ", ""),
    clear: async () => {
      await client.flushall()
    },
    stop: async () => {
      client.disconnect()
      await Effect.runPromise(Scope.close(scope, Exit.void))
    }
  }
}
