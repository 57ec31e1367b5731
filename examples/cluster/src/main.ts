/**
 * Three runners on one Redis. A client fills carts; then the runner of one cart is killed, and the cart is served by another.
 */
import { Effect, References, Schedule } from "effect"
import { type ChildProcess, spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import { Cart } from "./Cart.ts"
import { clientLayer } from "./storage.ts"

const firstPort = Number(process.env["CLUSTER_PORT"] ?? 34431)
const ports = [firstPort, firstPort + 1, firstPort + 2]

const startRunner = (port: number) =>
  Effect.acquireRelease(
    Effect.sync(() =>
      spawn(process.execPath, [fileURLToPath(new URL("runner.js", import.meta.url)), String(port)], {
        stdio: ["ignore", "inherit", "inherit"]
      })
    ),
    (runner) => Effect.sync(() => runner.kill())
  )

const program = Effect.gen(function* () {
  const runners = new Map<number, ChildProcess>()
  for (const port of ports) runners.set(port, yield* startRunner(port))

  const cartOf = yield* Cart.client
  // until runners are there, and while the cart moves to another one
  const add = (customer: string, article: string) =>
    cartOf(customer)
      .Add({ article })
      .pipe(Effect.timeout("2 seconds"), Effect.retry(Schedule.spaced("200 millis")), Effect.timeout("3 minutes"))

  for (const customer of ["alice", "bob", "carol"]) yield* add(customer, "a book")
  const { at, items } = yield* add("alice", "a lamp")
  console.log(`the cart of alice is at runner ${at}, with ${items} articles`)

  runners.get(at)?.kill("SIGKILL")
  console.log(`runner ${at} is killed`)
  const before = performance.now()
  const moved = yield* add("alice", "a chair")
  console.log(
    `the cart of alice is at runner ${moved.at}, ${((performance.now() - before) / 1000).toFixed(1)} seconds later`
  )
})

await Effect.runPromise(
  program.pipe(Effect.scoped, Effect.provide(clientLayer), Effect.provideService(References.MinimumLogLevel, "Error"))
)
