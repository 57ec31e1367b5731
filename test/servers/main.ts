/**
 * `pnpm test:servers`: runs the contract, and what depends on the server, on each server that can be had, and writes into docs/servers.md
 * what each passes and lacks. Which ones: the programs and images in REDIS_SERVERS (`REDIS_SERVERS=/opt/redis-8/redis-server,valkey/valkey:9`),
 * else the programs on the PATH and, where a Docker engine answers, the images below. Columns of other servers in the page stay as they are;
 * `--dry` prints the tables and writes nothing; `--only sentinel` runs what has that word in its title, and leaves the other rows as they
 * are. Ends with 1 if a test fails.
 */
import { RedisServer, TestRedis } from "@effect-redis-lock/testing"
import { Effect, type Scope } from "effect"
import { accessSync, chmodSync, constants, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { delimiter, join, resolve } from "node:path"
import { fileURLToPath } from "node:url"
import { Redis } from "ioredis"
import { featuresOf, nameOf } from "./features.ts"
import { readTables, RUN_ON, type ServerResult, writeTables } from "./page.ts"
import { failuresOf, outcomeOf, runTests } from "./runTests.ts"
import { chosen } from "./suites.ts"

const images = [
  "redis:6.2",
  "redis:7.0",
  "redis:7.2",
  "redis:7.4",
  "redis:8",
  "valkey/valkey:7.2",
  "valkey/valkey:8",
  "valkey/valkey:9",
  "eqalpha/keydb"
]

const programs = ["redis-server", "valkey-server", "keydb-server"]

const root = fileURLToPath(new URL("../../..", import.meta.url))
const page = join(root, "docs/servers.md")
const isDry = process.argv.includes("--dry")
const only = process.argv.includes("--only") ? process.argv[process.argv.indexOf("--only") + 1] : undefined
const suites = chosen(only)

/** The path of a program. */
const find = (program: string): string | undefined => {
  const folders = (process.env["PATH"] ?? "").split(delimiter)
  const candidates = program.includes("/") ? [resolve(program)] : folders.map((folder) => join(folder, program))
  return candidates.find((path) => {
    try {
      accessSync(path, constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}

/** An image is named after the colon or the slash that it has; a program is a file, or a name on the PATH. */
const isImage = (server: string): boolean => find(server) === undefined && /[:/]/.test(server) && !/^[./]/.test(server)

interface Running {
  readonly url: string
  /** Where the tests find the program, for servers of their own. */
  readonly binary?: string
}

const started = (server: string): Effect.Effect<Running, unknown, Scope.Scope> => {
  if (isImage(server)) return TestRedis.container({ image: server, quiet: true })
  const binary = find(server)
  if (binary === undefined) return Effect.fail(new Error(`there is no program ${server}`))
  return Effect.map(RedisServer.start({ binary }), ({ url }) => ({ url, binary }))
}

const tryServer = (server: string) =>
  Effect.gen(function* () {
    const { binary, url } = yield* started(server)
    const redis = new Redis(url)
    const name = yield* Effect.promise(() => nameOf(redis).finally(() => redis.disconnect()))
    console.log(`${name} (${server})`)
    const directory = mkdtempSync(join(tmpdir(), "servers-"))
    yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(directory, { recursive: true, force: true })))
    const features = yield* Effect.promise(() => featuresOf(url))
    const environment: Record<string, string> = { REDIS_URL: url, REDIS_STARTABLE: String(binary !== undefined) }
    if (only !== undefined) environment["REDIS_SUITES"] = only
    if (binary !== undefined) {
      // the tests start the first one on the PATH
      const shim = join(directory, "redis-server")
      writeFileSync(shim, `#!/bin/sh\nexec '${binary}' "$@"\n`)
      chmodSync(shim, 0o755)
      environment["PATH"] = `${directory}${delimiter}${process.env["PATH"]}`
    }
    const tests = yield* Effect.promise(() => runTests(environment, join(directory, "report.json")))
    const failures = failuresOf(tests)
    const outcomes = suites.map((suite) => outcomeOf(suite, tests, binary !== undefined))
    for (const [i, { title }] of suites.entries()) console.log(`  ${title}: ${outcomes[i]}`)
    for (const failure of failures) console.log(`  failed: ${failure}`)
    const result: ServerResult = {
      name,
      outcomes: {
        ...(only === undefined ? { [RUN_ON]: new Date().toISOString().slice(0, 10) } : {}),
        ...Object.fromEntries(suites.map(({ title }, i) => [title, outcomes[i]!]))
      },
      features
    }
    return { result, failures }
  }).pipe(Effect.scoped)

const named = (process.env["REDIS_SERVERS"] ?? "")
  .split(",")
  .flatMap((name) => (name.trim() === "" ? [] : [name.trim()]))
const servers = named.length > 0 ? named : [...programs.filter((program) => find(program) !== undefined), ...images]

const results: Array<ServerResult> = []
let failed = 0
for (const server of servers) {
  const tried = await Effect.runPromise(Effect.result(tryServer(server)))
  if (tried._tag === "Success") {
    results.push(tried.success.result)
    failed += tried.success.failures.length
  } else {
    console.log(
      `${server}: not tried: ${tried.failure instanceof Error ? tried.failure.message : String(tried.failure)}`
    )
    if (named.length > 0) failed++
  }
}

const text = writeTables(readFileSync(page, "utf8"), results)
if (isDry) for (const table of readTables(text)) console.log(`\n${table}`)
else writeFileSync(page, text)
console.log(`${results.length} servers, ${failed} failures`)
process.exit(failed === 0 && results.length > 0 ? 0 : 1)
