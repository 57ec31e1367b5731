/**
 * A client process of a chaos run with another library, as the benchmark uses it: `node dist/libraryClient.js '<settings>'` with an IPC channel. What
 * the library extends and what it says of losses is made use of; where it does neither, its sections are shorter than its leases.
 */
import type { Held, Program, Session } from "@effect-redis-lock/bench/Candidate"
import { entryOf } from "@effect-redis-lock/bench/entries"
import type { Performer } from "@effect-redis-lock/bench/Performer"
import { setTimeout as sleep } from "node:timers/promises"
import { ClientProcess } from "./clientProcess.ts"
import { type Kind, lockOf, now } from "./events.ts"

const client = new ClientProcess()
const { library = "", pause, urls, watchdogLeaseTime: leaseMillis = 30_000, work } = client.settings
const { candidate } = await (library === "naive" ? import("./naive.ts") : entryOf(library).load())
const [port, ...otherPorts] = urls.map((url) => Number(new URL(url).port)) as [number, ...Array<number>]
const connection = { port, otherPorts, leaseMillis }

let program: Promise<Performer> | undefined
let owners = 0

/** All fibers share a process of another runtime, which tells of no losses. */
const elsewhere = async ({ start }: Program): Promise<Pick<Session, "hold">> => {
  const performer = await (program ??= start(connection))
  return {
    hold: async (names, kind) => {
      const owner = ++owners
      await performer.hold({ kind, names, owner })
      return { lost: async () => 0, release: () => performer.release({ owner }) }
    }
  }
}

/** Takes the lock once; by `work`, where the library holds nothing for longer than it says. */
const take = async (session: Pick<Session, "hold"> & Partial<Session>, name: string): Promise<Held> => {
  if (session.work === undefined || library !== "simple-redis-mutex")
    return session.hold([name], otherPorts.length === 0 ? "lock" : "red")
  let leave = () => {}
  let isTaken = false
  let given: Promise<void> | undefined
  await new Promise<void>((entered, failed) => {
    given = session.work!({
      kind: "lock",
      next: () => (isTaken ? undefined : ((isTaken = true), name)),
      section: (done) => {
        leave = done
        entered()
      },
      think: undefined,
      gaveUp: () => {}
    })
    given.catch(failed)
  })
  return { lost: async () => 0, release: () => (leave(), given!) }
}

const section = async (session: Awaited<ReturnType<typeof opened>>, kind: Kind, fiber: string): Promise<string> => {
  const asked = now()
  client.tell({ event: "asks", at: asked, fiber, kind })
  const about = { fiber, kind, asked, owner: crypto.randomUUID() }
  try {
    const held = await take(session, lockOf(kind))
    const before = await held.lost()
    const report = async (event: "enters" | "stays" | "leaves") => {
      const at = now()
      if ((await held.lost()) > before) return false
      client.tell({ event, at, ...about })
      return true
    }
    let isHeld = await report("enters")
    const add = await client.read(about)
    for (const ends = now() + client.nextWork(); isHeld && now() < ends;) {
      await sleep(Math.min(10, work))
      isHeld = await report("stays")
    }
    if (isHeld) await add()
    if (isHeld) isHeld = await report("leaves")
    await held.release()
    return isHeld ? "done" : "LockLost: as it has said"
  } catch (error) {
    return `Failed: ${String(error)}`
  }
}

/** Some want a server that answers. */
const opened = async () => {
  while (true) {
    try {
      return await ("start" in candidate ? elsewhere(candidate) : candidate.open(connection))
    } catch {
      await sleep(50)
    }
  }
}

const run = async (kind: Kind, fiber: string) => {
  // its own, as some count the losses of a whole session
  const session = await opened()
  while (true) {
    const last = client.isFinishing
    const outcome = await section(session, kind, fiber)
    client.tell({ event: "ended", at: now(), fiber, kind, outcome })
    if (last && outcome === "done") return
    await sleep(outcome === "done" ? pause : 50)
  }
}

process.on("uncaughtException", (error) => client.tell({ event: "uncaught", at: now(), why: String(error) }))
// some print what their connections report
console.error = console.warn = () => {}
const fibers = Promise.all(client.fibers.map(([kind, name]) => run(kind, name)))
client.tell({ event: "ready", at: now() })
await fibers.then(
  () => client.close(),
  (error) => client.close(String(error))
)
process.exit(0)
