import { spawn } from "node:child_process"
import { createInterface } from "node:readline"
import { type Performer, performerElsewhere } from "../Performer.ts"
import { classPath } from "./javaBuild.ts"

interface Answer {
  readonly id: number
  readonly report?: unknown
  readonly error?: string
}

/** Starts the Java program, and sends it tasks as lines of JSON. It ends with its input, and so with this process. */
export const startJava = async (programArguments: ReadonlyArray<string>): Promise<Performer> => {
  const options = ["-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", classPath]
  const java = spawn("java", [...options, "effectredislock.bench.Main", ...programArguments], {
    stdio: ["pipe", "pipe", "pipe"]
  })
  const awaited = new Map<number, (answer: Answer) => void>()
  let stderr = ""
  java.stderr.on("data", (chunk) => {
    stderr += String(chunk)
  })
  java.stdin.on("error", () => {
    // its exit is handled below
  })
  const gone = new Promise<never>((_, reject) => {
    java.on("error", reject)
    java.on("exit", (code, signal) => {
      const reason = /^.*(?:Exception|Error): .*$/m.exec(stderr)?.[0] ?? stderr.trim().split("\n").at(-1)
      reject(new Error(reason || `Java ended with ${signal ?? code}`))
    })
  })
  gone.catch(() => {})
  const ready = new Promise<void>((resolve) => {
    createInterface({ input: java.stdout }).on("line", (line) => {
      const answer = JSON.parse(line) as { readonly ready: true } | Answer
      if ("ready" in answer) {
        resolve()
        return
      }
      awaited.get(answer.id)?.(answer)
      awaited.delete(answer.id)
    })
  })
  await Promise.race([ready, gone])
  let commands = 0
  return performerElsewhere(
    (task, order) => {
      const id = ++commands
      const report = new Promise<unknown>((resolve, reject) =>
        awaited.set(id, ({ error, report }) => (error === undefined ? resolve(report) : reject(new Error(error))))
      )
      java.stdin.write(`${JSON.stringify({ id, task, order })}\n`)
      return Promise.race([report, gone])
    },
    () => java.kill("SIGKILL")
  )
}
