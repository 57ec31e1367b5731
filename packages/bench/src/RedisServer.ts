import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtemp, rm } from "node:fs/promises"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Redis } from "ioredis"

const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, "127.0.0.1")
  await once(server, "listening")
  const address = server.address()
  server.close()
  await once(server, "close")
  if (address === null || typeof address === "string") throw new Error("no port")
  return address.port
}

/**
 * A Redis of our own, without persistence, for one run of the benchmark.
 */
export interface RedisServer {
  readonly port: number
  readonly version: string
  readonly clear: () => Promise<void>
  readonly stop: () => Promise<void>
}

export const startRedis = async (): Promise<RedisServer> => {
  const directory = await mkdtemp(join(tmpdir(), "redis-lock-bench-"))
  const port = await freePort()
  const options = ["--port", String(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
  const server = spawn("redis-server", [...options, "--dir", directory], { stdio: "ignore" })
  const failed = new Promise<never>((_, reject) => {
    server.on("error", (error) => reject(new Error(`redis-server does not start: ${error.message}`)))
  })
  const stopWithUs = () => server.kill()
  process.on("exit", stopWithUs)
  const client = new Redis({ port, lazyConnect: true, retryStrategy: () => 50 })
  client.on("error", () => {})
  const info = await Promise.race([client.info("server"), failed])
  return {
    port,
    version: /^redis_version:(\S+)/m.exec(info)?.[1] ?? "unknown",
    clear: async () => {
      await client.flushall()
    },
    stop: async () => {
      process.off("exit", stopWithUs)
      client.disconnect()
      server.kill()
      await once(server, "exit")
      await rm(directory, { recursive: true, force: true })
    }
  }
}
