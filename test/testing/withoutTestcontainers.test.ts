import { assert, describe, it } from "@effect/vitest"
import { execFile } from "node:child_process"
import { cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"

const testing = fileURLToPath(new URL("../../packages/testing", import.meta.url))

const program = `
import { TestRedis } from "@effect-redis-lock/testing"
import { Effect } from "effect"

const url = Effect.map(TestRedis.TestRedis, (redis) => redis.source)
console.log(await Effect.runPromise(Effect.provide(url, TestRedis.layerWith({ quiet: true }))))
const error = await Effect.runPromise(Effect.flip(Effect.scoped(TestRedis.container())))
console.log(error._tag + ": " + error.message)
`

describe("the package for tests, installed without Testcontainers", () => {
  it("The package for tests finds a local redis-server without Testcontainers, and says what is missing for a container", async () => {
    // something that answers as a Docker engine does
    const engine = createServer((_, response) => response.end("OK"))
    await new Promise<void>((resolve) => engine.listen(0, "127.0.0.1", resolve))
    const app = mkdtempSync(join(tmpdir(), "without-testcontainers-"))
    try {
      const installed = join(app, "node_modules/@effect-redis-lock/testing")
      mkdirSync(installed, { recursive: true })
      for (const part of ["dist", "package.json"])
        cpSync(join(testing, part), join(installed, part), { recursive: true })
      for (const peer of ["effect", "effect-redis-lock", "ioredis"]) {
        symlinkSync(realpathSync(join(testing, "node_modules", peer)), join(app, "node_modules", peer))
      }
      writeFileSync(join(app, "program.mjs"), program)
      const { port } = engine.address() as AddressInfo
      const { REDIS_URL: _, ...env } = process.env
      const { stdout } = await promisify(execFile)(process.execPath, ["program.mjs"], {
        cwd: app,
        env: { ...env, DOCKER_HOST: `tcp://127.0.0.1:${port}` }
      })
      assert.deepStrictEqual(stdout.trim().split("\n"), [
        "local server",
        "NoRedisFound: No Redis in a container: Testcontainers is not installed: npm install --save-dev testcontainers, or " +
          "have a redis-server on the PATH, which serves as well"
      ])
    } finally {
      engine.close()
      rmSync(app, { recursive: true, force: true })
    }
  })
})
