/**
 * One instance with `DistributedCron`: `node dist/instance.js <name>`. Start as many as you like, on as many machines.
 */
import { NodeRuntime } from "@effect/platform-node"
import { Cron, DateTime, Effect, Layer } from "effect"
import { DistributedCron } from "effect-redis-lock"
import { redis, scheduleName } from "./redis.ts"

const name = process.argv[2] ?? "instance 1"

const Report = DistributedCron.layer({
  name: scheduleName,
  cron: Cron.parse("* * * * * *"),
  execute: Effect.map(DistributedCron.CurrentScheduledTime, (time) =>
    console.log(`DistributedCron, ${DateTime.formatIso(time)}: ${name}`)
  )
})

NodeRuntime.runMain(Layer.launch(Layer.provide(Report, redis)))
