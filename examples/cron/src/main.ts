/**
 * Three instances with `DistributedCron` and three with node-cron, until each kind has run a few ticks. Ends with 1 if one ran twice.
 */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"

const enough = 3

/** How often each tick ran, by kind: `DistributedCron` and `node-cron`. */
const runs = new Map<string, Map<string, number>>()

const instances = ["instance.js", "nodeCron.js"].flatMap((program) =>
  ["instance 1", "instance 2", "instance 3"].map((name) =>
    spawn(process.execPath, [fileURLToPath(new URL(program, import.meta.url)), name], {
      stdio: ["ignore", "pipe", "inherit"]
    })
  )
)

for (const { stdout } of instances) {
  createInterface(stdout).on("line", (line) => {
    console.log(line)
    const [, kind = "", tick = ""] = /^(.+), (\S+): /.exec(line) ?? []
    const ticks = runs.get(kind) ?? new Map<string, number>()
    runs.set(kind, ticks.set(tick, (ticks.get(tick) ?? 0) + 1))
    if (runs.size === 2 && [...runs.values()].every(({ size }) => size >= enough)) end()
  })
}

/** Between two ticks, as node-cron does not wait for its coordinator when it ends. */
function end(): void {
  setTimeout(() => instances.forEach((instance) => instance.kill()), 500)
}

await Promise.all(instances.map((instance) => once(instance, "close")))
for (const [kind, ticks] of runs) {
  const twice = [...ticks.values()].filter((count) => count > 1).length
  console.log(`${ticks.size} ticks with ${kind}, of which ${twice} ran more than once`)
  if (twice > 0) process.exitCode = 1
}
