import { assert, describe, it } from "@effect/vitest"
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { hasProc, isRunning, processesOfRun, processesWith } from "../run/processes.ts"

const until = async (holds: () => boolean) => {
  while (!holds()) await setTimeout(20)
}

const exited = (child: ChildProcess) => (child.exitCode ?? child.signalCode) !== null || once(child, "exit")

describe("a process", () => {
  it("A process that runs is seen running, and one that was killed is not", async () => {
    const child = spawn("sleep", ["60"])
    await once(child, "spawn")
    assert.isTrue(isRunning(child.pid!))
    child.kill("SIGKILL")
    await exited(child)
    assert.isFalse(isRunning(child.pid!))
  })

  it.runIf(hasProc)("A process that nobody has reaped yet is not seen running", async () => {
    // the shell becomes a sleep, which never waits for the child that it has inherited
    const parent = spawn("sh", ["-c", "sleep 0.1 & echo $!; exec sleep 60"])
    const [line] = (await once(parent.stdout, "data")) as [Buffer]
    await until(() => !isRunning(Number(String(line))))
    // it is there: signal 0 reaches it
    assert.isTrue(process.kill(Number(String(line)), 0))
    parent.kill("SIGKILL")
    await exited(parent)
  })

  it.runIf(hasProc)("A process is found by a variable that it has inherited, even below a dead process", async () => {
    const id = `test-${process.pid}`
    const parent = spawn("sh", ["-c", "sleep 60 & wait"], { env: { ...process.env, FOUND_BY: id } })
    // the shell has its child before the child is a sleep, and a process that is just becoming another shows no environment
    await until(() => processesWith("FOUND_BY", id).some(({ command }) => command === "sleep 60"))
    assert.lengthOf(processesWith("FOUND_BY", id), 2)
    parent.kill("SIGKILL")
    await exited(parent)
    const left = processesWith("FOUND_BY", id)
    assert.deepStrictEqual(
      left.map(({ command }) => command),
      ["sleep 60"]
    )
    for (const { pid } of left) process.kill(pid, "SIGKILL")
    await until(() => processesWith("FOUND_BY", id).length === 0)
  })
})

describe("a run of the tests that is killed", () => {
  it.runIf(hasProc)(
    "A killed run of the tests leaves no process behind, not even one with its own session",
    async () => {
      const directory = realpathSync(mkdtempSync(join(tmpdir(), "killed-run-")))
      const leftovers = fileURLToPath(new URL("../dist/run/leftovers.js", import.meta.url))
      const run = spawn(
        process.execPath,
        [
          "--input-type=module",
          "--eval",
          `
          import { spawn } from "node:child_process"
          import { watchLeftovers } from ${JSON.stringify(leftovers)}
          watchLeftovers()
          spawn("sleep", ["60"], { detached: true, stdio: "ignore" })
          console.log(process.env.TMPDIR)
          setInterval(() => {}, 1000)
        `
        ],
        { env: { ...process.env, TMPDIR: directory } }
      )
      const [line] = (await once(run.stdout, "data")) as [Buffer]
      const ours = String(line).trim()
      await until(() => processesOfRun(ours).some(({ command }) => command === "sleep 60"))
      run.kill("SIGKILL")
      await until(() => processesOfRun(ours).length === 0)
      rmSync(directory, { recursive: true })
    }
  )
})
