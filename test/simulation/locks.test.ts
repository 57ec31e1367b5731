/**
 * Random faults between clients and servers: see `world.ts`. A failure names the seed of its world and prints its last
 * events; `pnpm worlds 1 <seed> "<kind>"` repeats it, and `pnpm worlds 2000` looks further.
 */
import { assert, describe, it } from "vitest"
import { faultyWorlds, kinds, smallWorlds } from "./kinds.ts"
import { livenessWorld } from "./liveness.ts"
import { livenessKinds } from "./livenessKinds.ts"
import { world } from "./world.ts"

const seeds = 1
const livenessSeeds = 1
const smallSeeds = 2

describe("a world of faults", () => {
  for (const [kind, { servers, ...workload }] of Object.entries(kinds)) {
    for (const count of servers) {
      const where = `${kind} on ${count === 1 ? "one server" : `${count} servers`}`
      it(`a world of faults lets in who may be in, and is free in the end: ${where}`, async () => {
        let entered = 0
        for (let seed = 1; seed <= seeds; seed++) {
          entered += world({ ...workload, seed, servers: count }).entered
          // others have their turn
          await new Promise((resume) => setImmediate(resume))
        }
        assert.isAbove(entered, 0)
      })
    }
  }
})

describe("small worlds of several servers", () => {
  for (const [title, small] of smallWorlds) {
    it(`small worlds of several servers let in who may be in, and are free in the end: ${title}`, async () => {
      let entered = 0
      for (let seed = 1; seed <= smallSeeds; seed++) {
        entered += world({ ...small, seed }).entered
        await new Promise((resume) => setImmediate(resume))
      }
      assert.isAbove(entered, 0)
    })
  }
})

/** The others take longer, and are left to `pnpm worlds`. */
const isShort = (title: string): boolean =>
  !title.startsWith("impatient quorums") && !/^(leaders|several|permits|.*not reentrant).*two clients/.test(title)

describe("a world of one more kind of fault", () => {
  for (const [title, faulty] of faultyWorlds.filter(([title]) => isShort(title))) {
    it(`a world of one more kind of fault lets in who may be in, and is free in the end: ${title}`, () => {
      assert.isAbove(world({ ...faulty, seed: 1 }).entered, 0)
    })
  }
})

describe("a world in which everybody must be served", () => {
  for (const [kind, load] of Object.entries(livenessKinds)) {
    it(`everybody is served, and nothing stands still: ${kind}`, async () => {
      for (let seed = 1; seed <= livenessSeeds; seed++) {
        assert.isAbove(livenessWorld({ ...load, seed }).entered, 0)
        await new Promise((resume) => setImmediate(resume))
      }
    })
  }
})
