import type { Program } from "../Candidate.ts"
import { startJava } from "../processes/javaProcess.ts"
import { dataCommands } from "./dataCommands.ts"

export const candidate: Program = {
  insideScripts: dataCommands,
  // An unlock reads its latch within the script, and sends DEL for it afterwards. A semaphore has none.
  sentNevertheless: (calls) => Math.min(calls("del"), calls("get")),
  warmUp: 3,
  start: ({ leaseMillis, otherPorts = [], port }) =>
    startJava(["redisson", leaseMillis, port, ...otherPorts].map(String))
}
