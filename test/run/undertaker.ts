/**
 * Outlives a run of the tests that was killed, and then kills what the run has left behind: servers, workers, programs of the
 * tests. Standard input is the lifeline, as only the run holds its other end: end of file means that the run is gone, however
 * it died. Run as `node dist/run/undertaker.js <the run's TMPDIR>`.
 */
import { rmSync } from "node:fs"
import { setTimeout } from "node:timers/promises"
import { kill, processesOfRun } from "./processes.ts"

const directory = process.argv[2]!
const killAll = async () => {
  // again and again, as what is killed may have started something meanwhile
  for (let left = processesOfRun(directory); left.length > 0; left = processesOfRun(directory)) {
    for (const process of left) kill(process)
    await setTimeout(50)
  }
}

let orderly = false
process.stdin.on("data", () => (orderly = true))
process.stdin.on("end", async () => {
  if (!orderly) await killAll()
  rmSync(directory, { recursive: true, force: true })
})
