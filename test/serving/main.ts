/**
 * `pnpm serving`: for each kind of lock, how often a request is passed over by later ones, and its longest wait beside the mean, with 2, 3 and
 * 8 processes of 1, 2, 3 and 8 fibers. Prints the table of docs/contention.md.
 */
import { RedisServer } from "@effect-redis-lock/testing"
import { Effect } from "effect"
import type { Round } from "../faults/fixtures/visitor.ts"
import { type LoadName, loads } from "./loads.ts"
import { measure } from "./measure.ts"

const processes = [2, 3, 8]
const fibers = [1, 2, 3, 8]
const names = (Object.keys(loads) as ReadonlyArray<LoadName>).filter((name) =>
  name.includes(process.argv.slice(2).join(" "))
)

const rounds = names.flatMap((load) =>
  fibers.map((fibers): Round => ({
    load,
    name: `${load}:${fibers}`,
    fibers,
    sections: 400,
    sectionMillis: 5,
    longestPauseMillis: 10
  }))
)

const program = Effect.gen(function* () {
  const cells = new Map<string, string>()
  for (const count of processes) {
    const server = yield* RedisServer.start()
    const services = yield* measure(server.url, count, rounds)
    services.forEach(({ longestWaitMillis, meanWaitMillis, passedByOthers, passedByOwn }, index) => {
      const { fibers, load } = rounds[index]!
      const own = passedByOwn === 0 ? "" : ` + ${passedByOwn}`
      const ratio = (longestWaitMillis / Math.max(meanWaitMillis, 1)).toFixed(1)
      cells.set(`${load} ${count} ${fibers}`, `${passedByOthers}${own}; ${ratio}`)
    })
  }
  const columns = processes.flatMap((count) => fibers.map((fibers) => ({ count, fibers })))
  const row = (texts: ReadonlyArray<string>) => console.log(`| ${texts.join(" | ")} |`)
  row(["", ...columns.map(({ count, fibers }) => `${count} × ${fibers}`)])
  row(["---", ...columns.map(() => "---:")])
  for (const load of names) row([load, ...columns.map(({ count, fibers }) => cells.get(`${load} ${count} ${fibers}`)!)])
})

await Effect.runPromise(Effect.scoped(program))
