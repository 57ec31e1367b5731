import type { History } from "@effect-redis-lock/playground/History"
import { WorldFailure, world } from "../simulation/world.ts"

/** The history of a world that must fail: its workers enter without a lock. */
export const unlockedWorld = (): History => {
  try {
    world({
      seed: 1,
      servers: 1,
      sides: [{ names: ["open"], share: "nobody", isReentrant: false, run: (section) => section({}) }]
    })
  } catch (error) {
    if (error instanceof WorldFailure) return { title: "without a lock, seed 1", ...error.file }
    throw error
  }
  throw new Error("nobody has met anybody else")
}
