import { defineConfig } from "vitest/config"
import "./node20.ts"

export default defineConfig({
  test: {
    include: ["**/*.test.ts"],
    // interop/ has a configuration of its own: it needs Java
    exclude: ["**/node_modules/**", "**/dist/**", "interop/**"],
    globalSetup: ["./globalSetup.ts"],
    // Real servers and processes on few cores: patience instead of flakiness.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    maxWorkers: 2
  }
})
