/**
 * Which tests a machine can run: without a redis-server those that need none, and a box at the end says what was left out.
 */
import { TestRedis } from "@effect-redis-lock/testing"
import { Effect, Layer, Result } from "effect"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { delimiter, dirname, join, resolve } from "node:path"
import { fileURLToPath } from "node:url"

/** The modules of the tests that a file loads, itself included, with their texts. */
const modulesOf = (file: string, seen = new Map<string, string>()): ReadonlyMap<string, string> => {
  if (seen.has(file) || !existsSync(file)) return seen
  const text = readFileSync(file, "utf8")
  seen.set(file, text)
  for (const [, path] of text.matchAll(/\bfrom "(\.[^"]+)"/g)) modulesOf(resolve(dirname(file), path!), seen)
  return seen
}

const root = fileURLToPath(new URL("..", import.meta.url))

/** The files of tests that load a module whose text matches. */
const filesThatName = (pattern: RegExp): ReadonlyArray<string> =>
  readdirSync(root, { recursive: true, encoding: "utf8" }).filter(
    (file) =>
      file.endsWith(".test.ts") &&
      !/(?:^|\/)(?:node_modules|dist|interop|ioredis|servers)\//.test(file) &&
      [...modulesOf(join(root, file)).values()].some((text) => pattern.test(text))
  )

const hasServer = () =>
  (process.env["PATH"] ?? "")
    .split(delimiter)
    .some((directory) => ["redis-server", "valkey-server"].some((name) => existsSync(join(directory, name))))

const boxOf = (lines: ReadonlyArray<string>): string => {
  const width = Math.max(...lines.map((line) => line.length))
  const edge = "─".repeat(width + 2)
  return [`┌${edge}┐`, ...lines.map((line) => `│ ${line.padEnd(width)} │`), `└${edge}┘`].join("\n")
}

/** The lines of a text, the longer ones broken. */
const linesOf = (text: string): ReadonlyArray<string> =>
  text.split("\n").flatMap((line) => (line.match(/.{1,100}(?:\s|$)/g) ?? [""]).map((part) => part.trimEnd()))

const programs = "RedisServer|RedisCluster|RedisSentinel|TestRedis"

/**
 * The files of tests that this machine cannot run: those that start servers, where there is no redis-server and none can be downloaded, and all
 * that need a Redis, where there is none at all. Where `CI` is set nothing is left out, and the run ends if there is no Redis, as it does where
 * `REDIS_URL` is wrong.
 */
export const leftOut = async (): Promise<ReadonlyArray<string>> => {
  const redis = await Layer.build(TestRedis.layerWith({ install: true, quiet: true })).pipe(
    Effect.scoped,
    Effect.result,
    Effect.runPromise
  )
  const isCi = (process.env["CI"] ?? "") !== ""
  if (hasServer() || (isCi && Result.isSuccess(redis))) return []
  const files = filesThatName(new RegExp(`\\b(?:${Result.isSuccess(redis) ? programs : `${programs}|REDIS_URL`})\\b`))
  const isRequired = Result.isFailure(redis) && (isCi || (process.env["REDIS_URL"] ?? "") !== "")
  const box = boxOf([
    ...linesOf(
      isRequired
        ? `No test was run, because there is no Redis${isCi ? ", and CI is set, which wants all tests" : ""}.`
        : `${files.length} files of tests were left out, because there is no redis-server.`
    ),
    "",
    ...linesOf(
      Result.isFailure(redis)
        ? redis.failure.message
        : 'These tests start servers of their own: put redis-server or valkey-server on the PATH, e.g. by "apt-get install redis-server" or "brew install redis".'
    )
  ])
  // so that it is the last thing that is seen
  process.once("exit", () => console.log(`\n${box}`))
  if (isRequired) process.exit(1)
  return files
}
