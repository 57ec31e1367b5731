import { assert, it } from "@effect/vitest"
import { Effect, Logger } from "effect"
import { spawn } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { expectWarning } from "../run/logs.ts"
import { test } from "../kit/test.ts"

const here = fileURLToPath(new URL("..", import.meta.url))

const imports = `
  import { it } from "vitest"
  import { Effect } from "effect"
  import { expectWarning } from "${here}run/logs.ts"
  const warn = () => Effect.runSync(Effect.annotateLogs(Effect.logWarning("beware"), { of: "the dog" }))
`

/** Runs Vitest on test files of these texts, with what our own runs have but the Redis: what it prints. */
const runOf = (files: Record<string, string>): Promise<{ readonly code: number | null; readonly output: string }> => {
  const directory = mkdtempSync(join(here, "dist", "logs-"))
  writeFileSync(
    join(directory, "vitest.config.mjs"),
    `
      import "${here}node20.ts"
      import { unexpectedWarnings } from "${here}run/unexpectedWarnings.ts"
      export default { test: {
        include: ["*.test.mjs"], setupFiles: ["${here}run/setUp.ts"], reporters: ["minimal", unexpectedWarnings], silent: "passed-only"
      } }
    `
  )
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, `${name}.test.mjs`), imports + text)
  const vitest = join(here, "node_modules", "vitest", "vitest.mjs")
  const child = spawn(process.execPath, [vitest, "run", "--root", directory], {
    env: { ...process.env, NO_COLOR: "1" }
  })
  let output = ""
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (more: string) => (output += more))
  return new Promise((resolve) =>
    child.on("close", (code) => {
      rmSync(directory, { recursive: true })
      resolve({ code, output })
    })
  )
}

test("A log entry of a test is recorded, and not printed by Effect's default logger", function* () {
  expectWarning(/^as expected$/)
  yield* Effect.logWarning("as expected")
  assert.isFalse((yield* Logger.CurrentLoggers).has(Logger.defaultLogger))
})

it("The log of a test is printed if it fails, and only then; a test that expects a warning fails without it", async () => {
  const { code, output } = await runOf({
    some: `
      it("passes", () => Effect.runSync(Effect.logInfo("of no " + "interest")))
      it("fails", () => { warn(); throw new Error("no") })
    `,
    silent: `it("says nothing", () => expectWarning(/beware/))`
  })
  assert.strictEqual(code, 1, output)
  assert.match(output, /WARN.*beware.*of="the dog"/)
  assert.notInclude(output, "of no interest")
  assert.match(output, /FAIL +silent\.test\.mjs > says nothing\n.*nobody has warned of \/beware\//)
})

it("A warning that no test expects is reported, and none that one of several concurrent tests expects", async () => {
  const { code, output } = await runOf({
    some: `
      it("warns once", warn)
      it("warns twice", () => { warn(); warn(); console.warn("console") })
      it("warns as it must", () => { expectWarning(/beware/); warn() })
    `,
    concurrent: `
      const pause = () => new Promise((resolve) => setTimeout(resolve, 100))
      it.concurrent("warns as it must", async () => { expectWarning(/beware/); await pause(); warn(); await pause() })
      it.concurrent("begins later and ends earlier", pause)
    `
  })
  assert.strictEqual(code, 0, output)
  assert.include(output, "some.test.mjs: beware (3, first in: warns once)")
  assert.include(output, "some.test.mjs: console (1, first in: warns twice)")
  assert.notInclude(output, "concurrent.test.mjs: beware")
})

it("What is run again, as the machine stood still, is run three times at most, and a line tells it of a test that passes", async () => {
  const { code, output } = await runOf({
    again: `
      import { undisturbed } from "${here}kit/undisturbed.ts"
      const failing = (times, stallMillis) => {
        const seen = { runs: 0 }
        const steps = undisturbed(50, function* (watch) {
          yield* watch({ time: async () => {} })
          Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, stallMillis)
          if (++seen.runs <= times) throw new Error("run " + seen.runs + " has failed")
        })
        return [seen, () => Effect.runPromise(steps)]
      }
      const fails = async (run) => {
        if (await run().then(() => true, () => false)) throw new Error("does not fail")
      }
      const [passing, pass] = failing(2, 100)
      it("passes at last", pass)
      it("has passed at the third try", () => { if (passing.runs !== 3) throw new Error("" + passing.runs) })
      const [hopeless, despair] = failing(3, 100)
      it("is given up", () => fails(despair))
      it("was tried three times", () => { if (hopeless.runs !== 3) throw new Error("" + hopeless.runs) })
      const [undisturbedly, fail] = failing(1, 0)
      it("fails at once", () => fails(fail))
      it("was tried once", () => { if (undisturbedly.runs !== 1) throw new Error("" + undisturbedly.runs) })
    `
  })
  assert.strictEqual(code, 0, output)
  assert.match(output, /^Run again, as the machine stood still for \d+ ms: passes at last\n.*run 1 has failed/m)
  assert.match(output, /passes at last\n.*run 2 has failed/)
})
