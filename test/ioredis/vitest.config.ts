/**
 * The driver over the oldest and the newest ioredis 5 that its peer range admits; the other tests run over ioredis 6.
 */
import { existsSync } from "node:fs"
import { createRequire } from "node:module"
import { fileURLToPath } from "node:url"
import { defineConfig } from "vitest/config"
import base from "../vitest.config.ts"

const { resolve } = createRequire(import.meta.url)

// a project adds its own list to an inherited one, and would run all tests
const { include: _, ...shared } = base.test!

const include = [
  "ioredis/*.test.ts",
  "contract/ioredis.test.ts",
  "contract/cluster.test.ts",
  "contract/semaphoresStores.test.ts",
  "integration/commandPath.test.ts",
  "integration/connections.test.ts",
  "integration/cluster.test.ts",
  "integration/serverWarnings.test.ts",
  "integration/urls.test.ts",
  "faults/connectionLog.test.ts",
  "faults/cutOff.test.ts",
  "faults/database.test.ts",
  "faults/endedConnection.test.ts",
  "faults/halfOpen.test.ts",
  "faults/lostReply.test.ts",
  "faults/lostSubscription.test.ts",
  "faults/readOnly.test.ts",
  "faults/sentinel.test.ts",
  "faults/serverDown.test.ts",
  "faults/silence.test.ts",
  "faults/unreachable.test.ts"
]

// Vitest runs nothing, and says nothing, where a file was renamed
for (const file of include) {
  if (!file.includes("*") && !existsSync(new URL(`../${file}`, import.meta.url)))
    throw new Error(`there is no test/${file}`)
}

export default defineConfig({
  test: {
    ...shared,
    exclude: ["**/node_modules/**", "**/dist/**"],
    root: fileURLToPath(new URL("..", import.meta.url)),
    projects: ["ioredis-5-oldest", "ioredis-5-newest"].map((name) => ({
      extends: true,
      // the driver and the tests load this one
      resolve: { alias: [{ find: /^ioredis$/, replacement: resolve(name) }] },
      test: {
        name,
        env: { IOREDIS_OF_THIS_RUN: name },
        include
      }
    }))
  }
})
