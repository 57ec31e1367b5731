/**
 * What Vitest does before each file of tests.
 */
import { recordLogs } from "./logs.ts"

recordLogs()
