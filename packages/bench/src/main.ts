/**
 * Measures effect-redis-lock beside the bare scripts and its peers, in one run.
 */
import { writeFile } from "node:fs/promises"
import { fileURLToPath } from "node:url"
import { parseArguments, usage } from "./arguments.ts"
import { catalog, ours } from "./candidates/catalog.ts"
import { compare } from "./compared/compare.ts"
import { describeMachine } from "./machine.ts"
import { startRedis } from "./servers/RedisServer.ts"
import { drawing } from "./report/drawing.ts"
import { growth } from "./report/growth.ts"
import { page } from "./report/page.ts"
import { duelTable, tableOf, targetTable, toText } from "./report/tables.ts"
import { runRounds } from "./rounds.ts"
import { growths } from "./workloads/catalog.ts"

const docs = (file: string): string => fileURLToPath(new URL(`../../../docs/${file}`, import.meta.url))

const readArguments = () => {
  try {
    return parseArguments(process.argv.slice(2))
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${usage}`)
    process.exit(2)
  }
}

const options = readArguments()
if (options.help) {
  console.log(usage)
  process.exit()
}

/** The libraries, over one Redis. */
const measureLibraries = async (): Promise<void> => {
  const startedAt = new Date()
  const count = Math.max(...options.workloads.map(({ servers = 1 }) => servers))
  const servers = await Promise.all(Array.from({ length: count }, () => startRedis()))
  const machine = describeMachine(servers[0]!.version)
  console.log(`${machine.hardware}, Node ${machine.node}, Redis ${machine.redis}, ioredis ${machine.ioredis}`)
  const results = await runRounds(
    async (_, workload) => {
      await Promise.all(servers.map((server) => server.clear()))
      const [first, ...others] = servers.slice(0, workload.servers ?? 1).map(({ port }) => port)
      return { system: "redis", port: first!, otherPorts: others }
    },
    options,
    (line) => console.log(line)
  )
  await Promise.all(servers.map((server) => server.stop()))

  // in the order of the catalog, not the one in which they ran
  const order = catalog.map(({ name }) => name)
  for (const workload of options.workloads) {
    console.log(`\n${workload.id}: ${workload.title}\n\n${toText(tableOf(workload, results, order))}`)
    for (const [candidate, reason] of results.leftOut(workload.id)) console.log(`left out: ${candidate}: ${reason}`)
  }
  const duels = duelTable(options.workloads, results)
  if (duels.rows.length > 0) console.log(`\nBeside Redisson\n\n${toText(duels)}`)
  console.log(`\nTargets\n\n${toText(targetTable(options.workloads, results))}`)

  if (options.json !== undefined) await writeFile(options.json, JSON.stringify(results, undefined, 2))
  if (options.plot !== undefined) await writeFile(options.plot, growth(growths, results))
  if (options.write) {
    await writeFile(docs("benchmarks.svg"), drawing(options.workloads, results))
    await writeFile(docs("benchmarks.md"), page({ machine, options, order, results, startedAt }))
    await writeFile(docs("contention.svg"), growth(growths, results))
    console.log(`\nwritten: docs/benchmarks.md, docs/benchmarks.svg, docs/contention.svg`)
  }

  // A peer that cannot be measured is a line in the report; our own library must be measured.
  if (options.workloads.some(({ id }) => results.isLeftOut(id, ours))) process.exitCode = 1
}

if (options.compare) {
  await compare(options, (line) => console.log(line))
  // so that no member of an ensemble that could not be started keeps it running
  process.exit()
}
await measureLibraries()
