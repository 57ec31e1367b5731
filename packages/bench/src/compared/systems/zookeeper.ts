import type { Program } from "../../Candidate.ts"
import { startJava } from "../../processes/javaProcess.ts"

/** Curator's `InterProcessMutex`, over a session that lasts as long as the lease. */
export const candidate: Program = {
  insideScripts: [],
  warmUp: 3,
  start: ({ leaseMillis, otherPorts = [], port }) =>
    startJava(["curator", leaseMillis, port, ...otherPorts].map(String))
}
