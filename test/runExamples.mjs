// Runs the examples of the documentation as a new user would, on real servers: each example's effects and layers that nothing else in it uses,
// inside an application that has a client already. Fails where one fails; --verbose prints what they log and come to, and a part of a path
// chooses among the files. Needs a redis-server, and downloads one on Debian.
import { RedisCluster, RedisSentinel, RedisServer, TestRedis } from "@effect-redis-lock/testing"
import { IoRedis } from "@effect-redis-lock/ioredis"
import { Cause, Effect, Exit, Layer, Logger } from "effect"
import { RedisLock } from "effect-redis-lock"
import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Redis } from "ioredis"
import ts from "typescript5"
import { examples } from "./exampleSources.mjs"

const out = fileURLToPath(new URL("dist-examples/run", import.meta.url))
const isVerbose = process.argv.includes("--verbose")
const only = process.argv.slice(2).find((argument) => !argument.startsWith("--"))

/** What examples declare and leave to the reader. */
Object.assign(globalThis, {
  steps: [(token) => Effect.log(`a step with token ${token}`), () => Effect.log("another one")],
  lastNight: Effect.succeed("2026-01-01"),
  writeReport: (night, token) => Effect.log(`report of ${night} with token ${token}`),
  callPartner: Effect.as(Effect.log("calling the partner"), "answer")
})

/** How often an effect is to run, where once is too little for the others of its example. */
const times = { worker: 3 }

/** What functions of examples are called with. */
const calls = { transfer: ["alice", "bob"], report: ["2026-11-22"], refresh: ["https://example.org"] }

/** What does not run by itself. */
const isLeftOut = ({ code }) =>
  // a test, a Docker engine, a program of its own, a server of the reader's, and what waits for a client of the reader's
  /@effect\/vitest|TestRedis\.container|declare const (app|server)|runMain|stallRepliesAfter/.test(code)

await Effect.runPromise(Effect.scoped(Layer.build(TestRedis.layerWith({ install: true, quiet: true }))))

const startServers = Effect.all(
  {
    one: RedisServer.start(),
    quorum: Effect.all([RedisServer.start(), RedisServer.start(), RedisServer.start()]),
    cluster: RedisCluster.start(),
    sentinel: RedisSentinel.start({ sentinels: 2 })
  },
  { concurrency: "unbounded" }
)

/** An example as a module that exports all that it declares, and whose servers are there. */
const moduleOf = ({ code }, { cluster, one, quorum, sentinel }) => {
  let text = code
    .replaceAll("redis://localhost:6379", one.url)
    .replaceAll(/redis:\/\/([abc])\b/g, (_, letter) => quorum["abc".indexOf(letter)].url)
    .replaceAll(/(nodes: )\[[^\]]*\]/g, (_, key) => key + JSON.stringify(cluster.urls))
    .replaceAll(
      /sentinels: \[[^\]]*\], name: "[^"]*"/g,
      () => `sentinels: ${JSON.stringify(sentinel.sentinels.map(({ url }) => url))}, name: "${sentinel.name}"`
    )
    .replaceAll(/^Effect\.run/gm, "await Effect.run")
    .replaceAll(/^Effect\.gen/gm, "export const program = Effect.gen")
  const hidden = [...text.matchAll(/^const (\w+)/gm)].map(([, name]) => name)
  const patterns = [...text.matchAll(/^const \{ ([\w, ]+) \}/gm)].flatMap(([, names]) => names.split(", "))
  text += `\nexport { ${[...hidden, ...patterns].join(", ")} }\n`
  return text
}

const runAll = Effect.gen(function* () {
  const servers = yield* startServers
  // of what is configured by the environment
  process.env.REDIS_URL = servers.one.url
  rmSync(out, { recursive: true, force: true })
  mkdirSync(out, { recursive: true })
  const chosen = examples.filter(
    (example) => !isLeftOut(example) && (only === undefined || example.source.includes(only))
  )
  const clients = [servers.one, ...servers.quorum].map(({ url }) => new Redis(url))
  yield* Effect.addFinalizer(() => Effect.sync(() => clients.forEach((client) => client.disconnect())))
  const failures = []
  const live = Layer.provide(RedisLock.layer(), IoRedis.layer({ url: servers.one.url }))
  for (const [index, example] of chosen.entries()) {
    const path = join(out, `example${index}.mjs`)
    const { outputText } = ts.transpileModule(moduleOf(example, servers), {
      compilerOptions: { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 }
    })
    writeFileSync(path, outputText)
    yield* Effect.promise(() => Promise.all(clients.map((client) => client.call("FLUSHALL"))))
    if (isVerbose) console.log(`\n--- ${example.source} (${index}): ${example.code.trim().split("\n").slice(-1)[0]}`)
    const module = yield* Effect.exit(Effect.tryPromise({ try: () => import(path), catch: (error) => error }))
    if (Exit.isFailure(module)) {
      failures.push([example, "import", Cause.pretty(module.cause)])
      continue
    }
    const runs = []
    for (const [name, given] of Object.entries(module.value)) {
      // what serves the rest of the example is run with it
      if ([...example.code.replace(/^ *\/\/.*$/gm, "").matchAll(new RegExp(`\\b${name}\\b`, "g"))].length > 1) continue
      const value = typeof given === "function" && name in calls ? given(...calls[name]) : given
      if (Effect.isEffect(value)) for (let i = 0; i < (times[name] ?? 1); i++) runs.push([name, value])
      else if (Layer.isLayer(value)) runs.push([name, Effect.scoped(Layer.build(value))])
    }
    yield* Effect.forEach(
      runs,
      ([name, effect], i) =>
        Effect.gen(function* () {
          yield* Effect.sleep(i * 100)
          const exit = yield* effect.pipe(
            Effect.scoped,
            Effect.provide(live),
            Effect.timeout("60 seconds"),
            Effect.exit
          )
          if (isVerbose)
            console.log(
              name,
              Exit.isSuccess(exit) ? "->" : "failed",
              Exit.isSuccess(exit) ? exit.value : Cause.pretty(exit.cause)
            )
          if (Exit.isFailure(exit)) failures.push([example, name, Cause.pretty(exit.cause)])
        }),
      { concurrency: "unbounded" }
    )
  }
  for (const [{ code, source }, name, problem] of failures)
    console.error(`\n${source}: ${name} failed: ${problem}\n${code}`)
  console.log(`${chosen.length} examples run, ${failures.length} failures`)
  return failures.length
})

const quiet = Logger.layer(isVerbose ? [Logger.consolePretty()] : [])
process.exit((await Effect.runPromise(runAll.pipe(Effect.scoped, Effect.provide(quiet)))) === 0 ? 0 : 1)
