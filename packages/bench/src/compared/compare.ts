/**
 * Measures other systems that lock, and ours, in one run: each on a server that is started for it and ends with this process.
 */
import { readFile, writeFile } from "node:fs/promises"
import { loadavg } from "node:os"
import { fileURLToPath } from "node:url"
import type { Arguments } from "../arguments.ts"
import { describeMachine } from "../machine.ts"
import { tableOf, toText } from "../report/tables.ts"
import { runRounds } from "../rounds.ts"
import { notMeasured, systems } from "./catalog.ts"
import { figures, overview, plot, withFigures } from "./report.ts"
import type { RunningServer, Server } from "./servers/Server.ts"

const docs = (file: string): string => fileURLToPath(new URL(`../../../../docs/${file}`, import.meta.url))

export const compare = async (options: Arguments, say: (line: string) => void): Promise<void> => {
  if (process.platform !== "linux") throw new Error("the servers' CPU time is read from /proc: run it on Linux")
  const startedAt = new Date()
  const running = new Map<Server, RunningServer>()
  const settings = new Map<string, string>()
  try {
    const chosen = systems.filter((system) => options.candidates.includes(system))
    const candidates = chosen.map((system) => ({
      ...system,
      prepare: async () => {
        const server = await system.server()
        settings.set(system.name, server.setting)
        const reason = (await server.missing()) ?? (await system.prepare?.())
        if (reason !== undefined || running.has(server)) return reason
        try {
          running.set(server, await server.start())
          return undefined
        } catch (error) {
          return (error as Error).message
        }
      }
    }))
    for (const [name, reason] of notMeasured) say(`${name}: left out, ${reason}`)
    const results = await runRounds(
      async ({ name }) => {
        const server = running.get(await systems.find((system) => system.name === name)!.server())!
        await server.clear()
        return server.place
      },
      { ...options, candidates },
      say
    )

    const order = systems.map(({ name }) => name)
    for (const workload of options.workloads) {
      say(`\n${workload.id}: ${workload.title}\n\n${toText(tableOf(workload, results, order))}`)
      for (const [candidate, reason] of results.leftOut(workload.id)) say(`left out: ${candidate}: ${reason}`)
    }
    say(`\nRatios to the reference\n\n${toText(overview(options.workloads, results))}`)

    if (options.json !== undefined) await writeFile(options.json, JSON.stringify(results, undefined, 2))
    if (options.plot !== undefined) await writeFile(options.plot, plot(options.workloads, results))
    if (options.write) {
      const versions = [...new Set([...running.values()].map(({ version }) => version))]
      const machine = describeMachine("")
      const part = figures({
        load: loadavg()[2]!,
        machine,
        options,
        results,
        settings,
        startedAt,
        systems: chosen,
        versions
      })
      await writeFile(
        docs("compared-systems.md"),
        withFigures(await readFile(docs("compared-systems.md"), "utf8"), part)
      )
      await writeFile(docs("compared-systems.svg"), plot(options.workloads, results))
      say("\nwritten: docs/compared-systems.md, docs/compared-systems.svg")
    }
  } finally {
    await Promise.all([...running.values()].map((server) => server.stop()))
  }
}
