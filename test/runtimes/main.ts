/**
 * `pnpm test:runtimes`: packs the packages, installs them by npm as a user would, and runs a small suite over each client on each runtime
 * of `versions.ts`, in processes of that runtime. Writes the table of docs/runtimes.md.
 *
 * `--dry` prints the table and writes nothing; `--only "ioredis 5"` tries only what has that in its title, client or runtime, and leaves
 * the other cells as they are; `--keep` keeps the folder. Ends with 1 if a check fails.
 */
import { RedisCluster, RedisSentinel, RedisServer } from "@effect-redis-lock/testing"
import { Effect, type Scope } from "effect"
import { spawn } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createServer, type AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { readTable, tableText, writeTable } from "../kit/pageTable.ts"
import { installClient, installRuntime, pack } from "./install.ts"
import type { CheckResult, Servers } from "./smoke/results.ts"
import { type Client, clients, type Runtime, runtimes } from "./versions.ts"

const root = fileURLToPath(new URL("../../..", import.meta.url))
const page = join(root, "docs/runtimes.md")
const table = { name: "runtimes", command: "pnpm test:runtimes" }
const tls = join(root, "test/integration/tls")
const isDry = process.argv.includes("--dry")
const only = process.argv.includes("--only") ? process.argv[process.argv.indexOf("--only") + 1] : undefined
const LONGEST_MILLIS = 240_000
const folder = mkdtempSync(join(tmpdir(), "runtimes-"))
process.on("exit", () => {
  if (process.argv.includes("--keep")) console.log(folder)
  else rmSync(folder, { recursive: true, force: true })
})

const freePort = Effect.callback<number>((resume) => {
  const server = createServer().listen(0, "127.0.0.1", () => {
    const { port } = server.address() as AddressInfo
    server.close(() => resume(Effect.succeed(port)))
  })
})

const startServers: Effect.Effect<Omit<Servers, "prefix">, unknown, Scope.Scope> = Effect.gen(function* () {
  const server = yield* RedisServer.start()
  const cluster = yield* RedisCluster.start()
  const { name, sentinels } = yield* RedisSentinel.start({ sentinels: 2, replicas: 0 })
  const port = yield* freePort
  const certificate = join(tls, "certificate.pem")
  const files = [
    "--tls-cert-file",
    certificate,
    "--tls-key-file",
    join(tls, "key.pem"),
    "--tls-ca-cert-file",
    certificate
  ]
  // not every server is built with it
  const speaksTls = yield* Effect.result(
    RedisServer.start({ args: ["--tls-port", String(port), ...files, "--tls-auth-clients", "no"] })
  )
  return {
    url: server.url,
    cluster: `redis+cluster://${cluster.urls.map((url) => new URL(url).host).join(",")}`,
    sentinel: `redis+sentinel://${sentinels.map(({ host, port }) => `${host}:${port}`).join(",")}/${name}`,
    ...(speaksTls._tag === "Success" ? { tls: `rediss://127.0.0.1:${port}?ca=${encodeURIComponent(certificate)}` } : {})
  }
})

interface Told {
  readonly results: ReadonlyArray<CheckResult>
  /** Through ioredis. */
  readonly path?: string
}

/** What a program told, and whether it ended by itself. */
const run = (program: string, runtime: Runtime, file: string, args: ReadonlyArray<string>) =>
  new Promise<Told>((resolve) => {
    const child = spawn(program, [...runtime.args, file, ...args], {
      env: {
        ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("npm_"))),
        RUNTIME_ARGS: JSON.stringify(runtime.args),
        LEAST_ARGS: JSON.stringify(runtime.leastArgs ?? []),
        NO_COLOR: "1",
        DENO_NO_UPDATE_CHECK: "1"
      },
      stdio: ["ignore", "pipe", "pipe"]
    })
    let output = ""
    let errors = ""
    child.stdout.setEncoding("utf8").on("data", (text: string) => (output += text))
    child.stderr.setEncoding("utf8").on("data", (text: string) => (errors += text))
    const timer = setTimeout(() => child.kill("SIGKILL"), LONGEST_MILLIS)
    child.on("error", (error) => (errors += error.message))
    child.on("close", (code, signal) => {
      clearTimeout(timer)
      const lines = output.split("\n").filter((line) => /^\{"(check|path)"/.test(line))
      const told = lines.map((line) => JSON.parse(line) as CheckResult | { readonly path: string })
      const end = {
        check: "The program ends by itself, without an error",
        ...(code === 0 ? {} : { error: `${signal ?? `exit code ${code}`}: ${errors}` })
      }
      resolve({
        results: [...told.filter((line) => "check" in line), end],
        ...told.find((line) => "path" in line)
      })
    })
  })

const folderOf = ({ title }: Client | Runtime): string => join(folder, title.replaceAll(" ", "-"))

/** The first lines of a text. */
const beginning = (text: string): ReadonlyArray<string> => text.trim().split("\n").slice(0, 12)

const tryOut = async (client: Client, runtime: Runtime, program: string, servers: Omit<Servers, "prefix">) => {
  const startedAt = performance.now()
  const title = `${client.title} on ${runtime.title}`
  const args = [
    ...(client.layers === undefined ? [] : [client.layers]),
    JSON.stringify({ ...servers, prefix: `${title}: ` } satisfies Servers)
  ]
  const { path, results } = await run(program, runtime, join(folderOf(client), `${client.program}.js`), args)
  const failed = results.flatMap(({ check, error }) => (error === undefined ? [] : [{ check, error }]))
  const passed = `${results.length}${path === "fast" ? ", fast path" : ""}`
  const outcome = failed.length === 0 ? passed : `**${failed.length} of ${results.length} fail**`
  console.log(`${title}: ${outcome}, ${((performance.now() - startedAt) / 1000).toFixed(0)} s`)
  for (const { check, error } of failed) console.log(["  failed: " + check, ...beginning(error)].join("\n    "))
  return { outcome, failed: failed.length }
}

const isChosen = (client: Client, runtime: Runtime): boolean =>
  only === undefined || `${client.title} on ${runtime.title}`.toLowerCase().includes(only.toLowerCase())

const tarballs = await pack(join(folder, "packed"))
const text = readFileSync(page, "utf8")
const before = readTable(text, table)
const columns = new Map(runtimes.map(({ title }) => [title, new Map(before.get(title))]))
let failures = 0

for (const client of clients) {
  if (!runtimes.some((runtime) => isChosen(client, runtime))) continue
  await installClient(client, tarballs, folderOf(client))
}

await Effect.runPromise(
  Effect.gen(function* () {
    const servers = yield* startServers
    for (const runtime of runtimes) {
      const chosen = clients.filter((client) => isChosen(client, runtime))
      if (chosen.length === 0) continue
      const installed = yield* Effect.result(Effect.tryPromise(() => installRuntime(runtime, folderOf(runtime))))
      for (const client of chosen) {
        if (installed._tag === "Failure") {
          console.log(`${runtime.title} not tried: ${String(installed.failure.cause)}`)
          columns.get(runtime.title)!.set(client.title, "not tried")
          continue
        }
        const { failed, outcome } = yield* Effect.promise(() => tryOut(client, runtime, installed.success, servers))
        columns.get(runtime.title)!.set(client.title, outcome)
        failures += failed
      }
    }
  }).pipe(Effect.scoped)
)

const written = writeTable(
  text,
  table,
  clients.map(({ title }) => title),
  columns
)
console.log(`\n${tableText(written, table)}\n`)
if (!isDry) writeFileSync(page, written)
console.log(`${failures} failures`)
process.exit(failures === 0 ? 0 : 1)
