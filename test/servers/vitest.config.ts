import { mergeConfig } from "vitest/config"
import ordinary from "../vitest.config.ts"
import { chosen, files } from "./suites.ts"

/**
 * What `pnpm test:servers` runs on each server.
 */
export default mergeConfig(
  { ...ordinary, test: { ...ordinary.test, include: [], exclude: ["**/node_modules/**", "**/dist/**"] } },
  { test: { include: [...files(chosen(process.env["REDIS_SUITES"]), process.env["REDIS_STARTABLE"] === "true")] } }
)
