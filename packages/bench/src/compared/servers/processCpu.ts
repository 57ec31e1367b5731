import { readdir, readFile } from "node:fs/promises"

/** What Linux counts CPU time in: `getconf CLK_TCK` is 100 on every architecture that Node.js runs on. */
const tickMicros = 10_000

interface Usage {
  readonly parent: number
  readonly ticks: number
}

const usageOf = async (pid: string): Promise<Usage | undefined> => {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => undefined)
  // the name before the last parenthesis may contain anything
  const fields = stat?.slice(stat.lastIndexOf(")") + 2).split(" ")
  if (fields === undefined) return undefined
  // user, system, and both of the children that have ended
  const ticks = fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0)
  return { parent: Number(fields[1]), ticks }
}

/** The CPU time that these processes and their descendants have used, in microseconds. Linux only. */
export const cpuMicrosOf = async (processes: ReadonlyArray<number>): Promise<number> => {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name))
  const usages = new Map<number, Usage>()
  for (const pid of pids) {
    const usage = await usageOf(pid)
    if (usage !== undefined) usages.set(Number(pid), usage)
  }
  const counts = (pid: number): boolean => {
    const parent = usages.get(pid)?.parent
    return processes.includes(pid) || (parent !== undefined && parent > 0 && counts(parent))
  }
  let micros = 0
  for (const [pid, { ticks }] of usages) if (counts(pid)) micros += ticks * tickMicros
  return micros
}
