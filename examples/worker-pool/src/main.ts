/**
 * A printer that prints one label at a time and refuses a second one meanwhile, and three workers that print twenty labels each: two like
 * worker.ts, and one in Java. A latch lets them begin together. Ends with 1 if a label was refused, or is missing.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { Effect, References } from "effect"
import { CountDownLatch } from "effect-redis-lock"
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { fileURLToPath } from "node:url"

const labels = 20

const startPrinter = Effect.gen(function* () {
  const printed: Array<string> = []
  let isPrinting = false
  let refused = 0
  const server = createServer((request, response) => {
    if (isPrinting) {
      refused++
      response.writeHead(409).end()
      return
    }
    isPrinting = true
    let label = ""
    request.setEncoding("utf8").on("data", (part: string) => (label += part))
    request.on("end", () =>
      setTimeout(() => {
        printed.push(label)
        isPrinting = false
        response.end()
      }, 20)
    )
  })
  yield* Effect.acquireRelease(
    Effect.promise(() => once(server.listen(0, "127.0.0.1"), "listening")),
    () => Effect.sync(() => server.close())
  )
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, printed, refused: () => refused }
})

const start = (program: string, args: ReadonlyArray<string>) =>
  Effect.acquireRelease(
    Effect.sync(() => spawn(program, args, { stdio: ["ignore", "inherit", "inherit"] })),
    (worker) => Effect.sync(() => worker.kill("SIGKILL"))
  )

const ended = (worker: ChildProcess) => Effect.promise(async () => (await once(worker, "exit"))[0] as number | null)

const program = Effect.gen(function* () {
  yield* CountDownLatch.trySetCount("label-printer:workers", 3)
  const printer = yield* startPrinter
  const worker = fileURLToPath(new URL("worker.js", import.meta.url))
  const jar = fileURLToPath(new URL("../java/target/worker.jar", import.meta.url))
  const codes = yield* Effect.flatMap(
    Effect.all([
      start(process.execPath, [worker, "TypeScript-1", printer.url, `${labels}`]),
      start(process.execPath, [worker, "TypeScript-2", printer.url, `${labels}`]),
      start("java", ["-jar", jar, "Java", printer.url, `${labels}`])
    ]),
    (workers) => Effect.all(workers.map(ended), { concurrency: "unbounded" })
  )
  console.log(printer.printed.join(", "))
  console.log(`${printer.printed.length} labels, ${printer.refused()} refused`)
  if (codes.some((code) => code !== 0) || printer.printed.length !== 3 * labels || printer.refused() > 0)
    process.exitCode = 1
})

await Effect.runPromise(
  program.pipe(
    Effect.scoped,
    Effect.provide(IoRedis.layerRedisLock({ urls: [process.env["REDIS_URL"] ?? "redis://localhost:6379"] })),
    Effect.provideService(References.MinimumLogLevel, "Error")
  )
)
