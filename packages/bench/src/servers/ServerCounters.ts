import { Redis } from "ioredis"
import type { Counting } from "../Candidate.ts"

export interface Counts {
  /** Calls by command. */
  readonly calls: ReadonlyMap<string, number>
  readonly cpuMicros: number
}

/** What a server has done since it was started. */
export interface Counters {
  readonly read: () => Promise<Counts>
}

/** What the harness itself sends, and replicas. */
const ownCommands: ReadonlySet<string> = new Set(["info", "exists", "flushall", "psync", "replconf"])

/** The counters of one Redis, or the sums of several, read over connections of their own. */
export class ServerCounters implements Counters {
  readonly #clients: ReadonlyArray<Redis>
  readonly #replicas: ReadonlyArray<Redis>

  /** Of the replicas only the CPU time counts: what they run was sent to their master. */
  constructor(ports: ReadonlyArray<number>, replicaPorts: ReadonlyArray<number> = []) {
    this.#clients = ports.map((port) => new Redis({ port }))
    this.#replicas = replicaPorts.map((port) => new Redis({ port }))
  }

  async read(): Promise<Counts> {
    const calls = new Map<string, number>()
    let cpuMicros = 0
    for (const client of [...this.#clients, ...this.#replicas]) {
      const info = await client.info("commandstats", "cpu")
      const field = (name: string) => Number(new RegExp(`^${name}:(.*)$`, "m").exec(info)?.[1])
      cpuMicros += (field("used_cpu_user") + field("used_cpu_sys")) * 1e6
      if (this.#replicas.includes(client)) continue
      for (const [, command, count] of info.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)) {
        calls.set(command!, (calls.get(command!) ?? 0) + Number(count))
      }
    }
    return { calls, cpuMicros }
  }

  /** How many of these keys do not exist on the first server. */
  async missing(keys: ReadonlyArray<string>): Promise<number> {
    return keys.length - (await this.#clients[0]!.exists(...keys))
  }

  close(): void {
    for (const client of [...this.#clients, ...this.#replicas]) client.disconnect()
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
