/**
 * One instance with node-cron: `node dist/nodeCron.js <name>`.
 */
import { ManagedRuntime } from "effect"
import { schedule, setRunCoordinator, shutdown } from "node-cron"
import { redis, scheduleName } from "./redis.ts"
import { runCoordinator } from "./runCoordinator.ts"

const name = process.argv[2] ?? "instance 1"

const runtime = ManagedRuntime.make(redis)
setRunCoordinator(runCoordinator(runtime))

schedule("* * * * * *", ({ date }) => console.log(`node-cron, ${date.toISOString()}: ${name}`), {
  name: scheduleName,
  distributed: true
})

process.once("SIGTERM", () => void shutdown().then(() => runtime.dispose()))
