import { mergeConfig } from "vitest/config"
import ordinary from "../vitest.config.ts"

/**
 * The tests with the real Redisson, which need a JDK and Maven: `pnpm test:interop`.
 */
export default mergeConfig(
  { ...ordinary, test: { ...ordinary.test, include: [], exclude: ["**/node_modules/**", "**/dist/**"] } },
  { test: { include: ["interop/**/*.test.ts"], globalSetup: ["./interop/build.ts"] } }
)
