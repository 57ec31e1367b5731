/**
 * Three instances, and a client that is served by whichever leads: the first leader is killed, the next one is told to end.
 */
import { Effect, Option, Stream } from "effect"
import { LeaderElection } from "effect-redis-lock"
import { type ChildProcess, spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import { primary, redis } from "./primary.ts"

const startInstance = (name: string) =>
  Effect.acquireRelease(
    Effect.sync(() =>
      spawn(process.execPath, [fileURLToPath(new URL("instance.js", import.meta.url)), name], {
        stdio: ["ignore", "inherit", "inherit"]
      })
    ),
    (instance) => Effect.sync(() => instance.kill())
  )

/** Waits for a leader of a later term that has proclaimed its address, and asks it for its name. */
const askLeaderAfter = (term: bigint) =>
  LeaderElection.changes(primary).pipe(
    Stream.map(Option.filter((leader) => leader.term > term)),
    Stream.map(Option.flatMap(({ term, value }) => Option.map(value, (url) => ({ term, url })))),
    Stream.filter(Option.isSome),
    Stream.runHead,
    Effect.map((found) => Option.getOrThrow(Option.flatten(found))),
    Effect.flatMap(({ term, url }) => Effect.promise(async () => ({ term, name: await (await fetch(url)).text() })))
  )

const program = Effect.gen(function* () {
  const instances = new Map<string, ChildProcess>()
  for (const name of ["instance 1", "instance 2", "instance 3"]) instances.set(name, yield* startInstance(name))

  let leader = yield* askLeaderAfter(0n)
  console.log(`the client is served by ${leader.name}`)
  for (const [signal, what] of [
    ["SIGKILL", "is killed"],
    ["SIGTERM", "is told to end"]
  ] as const) {
    instances.get(leader.name)?.kill(signal)
    console.log(`${leader.name} ${what}`)
    const before = performance.now()
    leader = yield* askLeaderAfter(leader.term)
    console.log(`the client is served by ${leader.name}, ${Math.round(performance.now() - before)} ms later`)
  }
})

await Effect.runPromise(program.pipe(Effect.scoped, Effect.provide(redis)))
