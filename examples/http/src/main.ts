/**
 * Two instances of the service, and requests to both: for one order at once, for two orders at once, and while an instance is told to end.
 */
import { Effect, Queue } from "effect"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"

const firstPort = Number(process.env["HTTP_PORT"] ?? 34471)

const startInstance = (name: string, port: number) =>
  Effect.gen(function* () {
    const lines = yield* Queue.unbounded<string>()
    const instance = yield* Effect.acquireRelease(
      Effect.sync(() =>
        spawn(process.execPath, [fileURLToPath(new URL("instance.js", import.meta.url)), String(port)], {
          stdio: ["ignore", "pipe", "inherit"]
        })
      ),
      (instance) => Effect.sync(() => instance.kill("SIGKILL"))
    )
    createInterface({ input: instance.stdout }).on("line", (line) => {
      if (/\bERROR\b/.test(line)) console.error(line)
      Queue.offerUnsafe(lines, line)
    })

    const said = (text: string): Effect.Effect<void> =>
      Effect.flatMap(Queue.take(lines), (line) => (line.includes(text) ? Effect.void : said(text)))

    // such as one that finds no Redis
    const ended = Effect.flatMap(
      Effect.promise(() => once(instance, "close")),
      () => Effect.fail(new Error(`instance ${name} has ended`))
    )
    yield* Effect.raceFirst(said("Listening"), ended)
    return {
      said,
      end: Effect.sync(() => instance.kill("SIGTERM")),
      ship: (order: string) =>
        Effect.promise(async () => {
          const response = await fetch(`http://127.0.0.1:${port}/orders/${order}/shipment`, { method: "POST" })
          console.log(`  ${name}: ${response.status} ${(await response.text()).trim()}`)
          return response.status
        }).pipe(
          Effect.catchCause(() =>
            Effect.as(
              Effect.sync(() => console.log(`  ${name}: no answer`)),
              undefined
            )
          )
        )
    }
  })

const expect = (expected: ReadonlyArray<number>, actual: ReadonlyArray<number | undefined>) =>
  Effect.sync(() => {
    if (String(expected) === String(actual)) return
    console.log(`expected ${expected}`)
    process.exitCode = 1
  })

const atOnce = { concurrency: "unbounded" } as const

const program = Effect.gen(function* () {
  const a = yield* startInstance("A", firstPort)
  const b = yield* startInstance("B", firstPort + 1)

  console.log("One order, both instances:")
  const one = yield* Effect.all([a.ship("17"), Effect.andThen(a.said("shipping 17"), b.ship("17"))], atOnce)
  yield* expect([200, 409], one)

  console.log("Two orders:")
  yield* expect([200, 200], yield* Effect.all([a.ship("18"), b.ship("19")], atOnce))

  console.log("A is told to end while it ships: it answers first, and gives its lock back.")
  const last = Effect.andThen(a.said("shipping 20"), Effect.andThen(a.end, Effect.sleep("2 seconds")))
  yield* Effect.all([a.ship("20"), last], atOnce)
  yield* expect([200], [yield* b.ship("20")])
})

await Effect.runPromise(Effect.scoped(program))
