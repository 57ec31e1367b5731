/**
 * Three times two processes pay from one account: at once; while one of them stands still; and while one stands still that cannot be
 * interrupted. In the end the account must have what it should.
 */
import { Effect, Queue, References } from "effect"
import { SqlClient } from "effect/sql"
import { spawn } from "node:child_process"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { database } from "./services.ts"

const account = "alice"

const startWorker = (name: string, amount: number, ...manner: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const lines = yield* Queue.unbounded<string>()
    const worker = yield* Effect.acquireRelease(
      Effect.sync(() =>
        spawn(
          process.execPath,
          [fileURLToPath(new URL("worker.js", import.meta.url)), account, String(amount), ...manner],
          { stdio: ["pipe", "pipe", "inherit"] }
        )
      ),
      (worker) => Effect.sync(() => worker.kill("SIGKILL"))
    )
    createInterface({ input: worker.stdout }).on("line", (line) => {
      console.log(`  ${name}: ${line}`)
      Queue.offerUnsafe(lines, line)
    })
    return {
      /** What it says next. */
      says: Queue.take(lines),
      answer: Effect.sync(() => worker.stdin.end("yes\n")),
      stop: Effect.sync(() => worker.kill("SIGSTOP")),
      goOn: Effect.sync(() => worker.kill("SIGCONT"))
    }
  })

/** A whole payment. */
const pays = (name: string, amount: number) =>
  Effect.gen(function* () {
    const worker = yield* startWorker(name, amount)
    yield* worker.says
    yield* worker.answer
    return yield* worker.says
  })

const atOnce = Effect.gen(function* () {
  console.log("Two processes pay at once: the second one waits for the first.")
  yield* Effect.all([pays("A", 10), pays("B", 10)], { concurrency: "unbounded" })
})

const whileOneIsStopped = Effect.gen(function* () {
  console.log("\nA is stopped for longer than its lease. When it goes on, it is interrupted.")
  const a = yield* startWorker("A", 15)
  yield* a.says
  yield* a.stop
  yield* pays("B", 10)
  yield* a.goOn
  yield* a.says
})

const whileOneCannotBeInterrupted = Effect.gen(function* () {
  console.log("\nThe same with a process that cannot be interrupted: PostgreSQL refuses what it writes.")
  const a = yield* startWorker("A", 15, "stubborn")
  yield* a.says
  yield* a.stop
  yield* pays("B", 10)
  yield* a.goOn
  yield* a.answer
  yield* a.says
})

const program = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    CREATE TABLE IF NOT EXISTS account (id text PRIMARY KEY, balance bigint NOT NULL, fence bigint NOT NULL DEFAULT 0)`
  yield* sql`INSERT INTO account VALUES (${account}, 100) ON CONFLICT (id) DO UPDATE SET balance = 100`

  yield* Effect.scoped(atOnce)
  yield* Effect.scoped(whileOneIsStopped)
  yield* Effect.scoped(whileOneCannotBeInterrupted)

  const [row] = yield* sql<{ readonly balance: string }>`SELECT balance::text FROM account WHERE id = ${account}`
  console.log(`\n100 - 4 payments of 10 = ${row?.balance}`)
  if (row?.balance !== "60") process.exitCode = 1
})

await Effect.runPromise(
  program.pipe(Effect.provide(database), Effect.provideService(References.MinimumLogLevel, "Error"))
)
