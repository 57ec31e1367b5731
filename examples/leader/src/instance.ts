/**
 * One instance: `node dist/instance.js <name>`. Start as many as you like, on as many machines.
 */
import { NodeRuntime } from "@effect/platform-node"
import { Effect } from "effect"
import { LeaderElection } from "effect-redis-lock"
import { once } from "node:events"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { primary, redis } from "./primary.ts"

const name = process.argv[2] ?? "instance 1"

/** Serves until its scope closes: when this instance leads no more. */
const serve = Effect.acquireRelease(
  Effect.promise(async () => {
    const server = createServer((_, response) => void response.end(name)).listen(0, "127.0.0.1")
    await once(server, "listening")
    return server
  }),
  (server) =>
    Effect.sync(() => {
      server.close()
      server.closeAllConnections()
    })
)

const lead = Effect.gen(function* () {
  const leadership = yield* LeaderElection.currentLeadership(primary)
  const { port } = (yield* serve).address() as AddressInfo
  yield* leadership.proclaim(`http://127.0.0.1:${port}`)
  console.log(`${name} leads`)
  yield* Effect.never
})

NodeRuntime.runMain(Effect.scoped(lead).pipe(LeaderElection.whileLeader(primary), Effect.provide(redis)))
