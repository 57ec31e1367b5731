import { Redis } from "ioredis"
import type { Counting } from "../Candidate.ts"

export interface Counts {
  /** Calls by command. */
  readonly calls: ReadonlyMap<string, number>
  readonly cpuMicros: number
  readonly bytesIn: number
}

/** What the harness itself sends. */
const ownCommands: ReadonlySet<string> = new Set(["info", "exists", "flushall"])

/** The counters of one Redis, or the sums of several, read over connections of their own. */
export class ServerCounters {
  readonly #clients: ReadonlyArray<Redis>

  constructor(ports: ReadonlyArray<number>) {
    this.#clients = ports.map((port) => new Redis({ port }))
  }

  async read(): Promise<Counts> {
    const calls = new Map<string, number>()
    let cpuMicros = 0
    let bytesIn = 0
    for (const client of this.#clients) {
      const info = await client.info("commandstats", "cpu", "stats")
      for (const [, command, count] of info.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)) {
        calls.set(command!, (calls.get(command!) ?? 0) + Number(count))
      }
      const field = (name: string) => Number(new RegExp(`^${name}:(.*)$`, "m").exec(info)?.[1])
      cpuMicros += (field("used_cpu_user") + field("used_cpu_sys")) * 1e6
      bytesIn += field("total_net_input_bytes")
    }
    return { calls, cpuMicros, bytesIn }
  }

  /** How many of these keys do not exist on the first server. */
  async missing(keys: ReadonlyArray<string>): Promise<number> {
    return keys.length - (await this.#clients[0]!.exists(...keys))
  }

  close(): void {
    for (const client of this.#clients) client.disconnect()
  }
}

/** Commands that clients sent between two readings. Redis also counts those within scripts, which are left out. */
export const commandsSent = (candidate: Counting, before: Counts, after: Counts): number => {
  const calls = (command: string) => (after.calls.get(command) ?? 0) - (before.calls.get(command) ?? 0)
  const notSent = new Set(candidate.insideScripts)
  let sent = candidate.sentNevertheless?.(calls) ?? 0
  for (const command of after.calls.keys()) {
    if (!notSent.has(command) && !ownCommands.has(command)) sent += calls(command)
  }
  return sent
}
