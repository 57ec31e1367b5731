/**
 * What the server runs: from its own counters, which count the commands within scripts.
 */
import { Effect } from "effect"
import type { Redis } from "ioredis"

/**
 * Which commands the server runs for something, as `"2 zscore"`, on a server that nobody else uses. A client subscribes in its own time, before or
 * after that.
 */
export const commandsOf = Effect.fnUntraced(function* <A, E, R>(redis: Redis, self: Effect.Effect<A, E, R>) {
  yield* Effect.promise(() => redis.config("RESETSTAT"))
  const result = yield* self
  const stats = yield* Effect.promise(() => redis.info("commandstats"))
  const commands = [...stats.matchAll(/cmdstat_([a-z]+):calls=(\d+)/g)]
    .map(([, name, calls]) => `${calls} ${name}`)
    .filter((command) => !/ (?:config|info|ping|subscribe)$/.test(command))
    .sort()
  return { result, commands }
})

/** How many commands of these names the server has run since the last reset. */
export const commandsRun = (redis: Redis, ...names: ReadonlyArray<string>) =>
  Effect.promise(async () => {
    const stats = await redis.info("commandstats")
    const calls = (name: string) => Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(stats)?.[1] ?? 0)
    return names.reduce((sum, name) => sum + calls(name), 0)
  })

/** How many scripts the server has run since the last reset. */
export const scriptsRun = (redis: Redis) => commandsRun(redis, "eval", "evalsha")

/** How many commands these are. */
export const sumOf = (commands: ReadonlyArray<string>): number =>
  commands.reduce((sum, command) => sum + Number.parseInt(command, 10), 0)
