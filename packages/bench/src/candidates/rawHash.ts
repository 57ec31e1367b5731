import type { Library } from "../Candidate.ts"
import { dataCommands } from "./dataCommands.ts"
import { polling } from "./polling.ts"
import { openRawScripts } from "./rawScripts.ts"

export const candidate: Library = {
  insideScripts: dataCommands,
  open: async ({ leaseMillis, port }) => polling(await openRawScripts(port, leaseMillis), leaseMillis)
}
