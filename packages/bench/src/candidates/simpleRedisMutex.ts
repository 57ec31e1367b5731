import { createClient } from "redis"
import { lock } from "simple-redis-mutex"
import type { Library } from "../Candidate.ts"
import { overPromises } from "./promises.ts"

export const candidate: Library = {
  insideScripts: ["get", "del", "publish"],
  keyOf: (name) => `@simple-redis-mutex:lock-${name}`,
  open: async ({ leaseMillis, port }) => {
    const client = createClient({ socket: { port } })
    // it throws otherwise, where a connection breaks
    client.on("error", () => {})
    await client.connect()
    const acquire = (name: string) => lock(client, name, { timeout: leaseMillis })
    return {
      ...overPromises({ acquire, release: (release) => release(), isGivenUp: () => false }),
      hold: () => Promise.reject(new Error("simple-redis-mutex renews no lock by itself"))
    }
  }
}
