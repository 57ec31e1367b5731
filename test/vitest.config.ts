import { defineConfig } from "vitest/config"
import "./node20.ts"
import { leftOut } from "./run/needs.ts"
import { unexpectedWarnings } from "./run/unexpectedWarnings.ts"

export default defineConfig({
  test: {
    include: ["**/*.test.ts"],
    // these have configurations of their own: interop/ needs Java, ioredis/ another ioredis, servers/ takes its time
    exclude: ["**/node_modules/**", "**/dist/**", "interop/**", "ioredis/**", "servers/**", ...(await leftOut())],
    globalSetup: ["./globalSetup.ts"],
    setupFiles: ["./run/setUp.ts"],
    // says nothing of tests that pass
    reporters: ["minimal", unexpectedWarnings],
    silent: "passed-only",
    // Real servers and processes on few cores: patience instead of flakiness.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    maxWorkers: 3,
    // A worker loads Effect and the packages once, not for each file, which takes a second: a test puts back what it changes of its process.
    isolate: false,
    // those that run at the same time wait most of theirs
    maxConcurrency: 16
  }
})
