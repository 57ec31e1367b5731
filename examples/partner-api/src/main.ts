/**
 * A partner that serves five calls at once and refuses a sixth, and three processes that call it thirty times each. One of them is
 * killed in the middle: its permits come back when their leases end.
 */
import { Effect, Queue } from "effect"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { fileURLToPath } from "node:url"

/** What the partner sees. */
const startPartner = Effect.gen(function* () {
  const begun = yield* Queue.unbounded<number>()
  const seen = { now: 0, most: 0, refused: 0 }
  const server = createServer((_, response) => {
    if (seen.now === 5) {
      seen.refused++
      response.writeHead(429).end()
      return
    }
    seen.now++
    seen.most = Math.max(seen.most, seen.now)
    Queue.offerUnsafe(begun, seen.now)
    let isOver = false
    const end = () => {
      if (!isOver) seen.now--
      isOver = true
      response.end()
    }
    const timer = setTimeout(end, 50)
    // its caller was killed
    response.on("close", () => {
      clearTimeout(timer)
      end()
    })
  })
  yield* Effect.acquireRelease(
    Effect.promise(() => once(server.listen(0, "127.0.0.1"), "listening")),
    () => Effect.sync(() => server.close())
  )
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, seen, begins: Queue.take(begun) }
})

const startWorker = (url: string) =>
  Effect.acquireRelease(
    Effect.sync(() =>
      spawn(process.execPath, [fileURLToPath(new URL("worker.js", import.meta.url)), url, "30"], {
        stdio: ["ignore", "inherit", "inherit"]
      })
    ),
    (worker) => Effect.sync(() => worker.kill("SIGKILL"))
  )

const program = Effect.gen(function* () {
  const partner = yield* startPartner
  const victim = yield* startWorker(partner.url)
  // such as one that finds no Redis
  const ended = Effect.flatMap(
    Effect.promise(() => once(victim, "exit")),
    () => Effect.fail(new Error("a worker has ended before it called the partner"))
  )
  yield* Effect.raceFirst(partner.begins, ended)
  victim.kill("SIGKILL")
  console.log("A process was killed while it called the partner. Two others make thirty calls each ...")

  const workers = [yield* startWorker(partner.url), yield* startWorker(partner.url)]
  const codes = yield* Effect.all(
    workers.map((worker) => Effect.promise(async () => (await once(worker, "exit"))[0] as number | null)),
    { concurrency: "unbounded" }
  )
  const { most, refused } = partner.seen
  console.log(`... and are done: at most ${most} calls at once, ${refused} refused.`)
  if (codes.some((code) => code !== 0) || most > 5 || refused > 0) process.exitCode = 1
})

await Effect.runPromise(Effect.scoped(program))
