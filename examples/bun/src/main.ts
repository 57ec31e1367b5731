/**
 * Three instances on Bun, each started when the job of the one before has ended. Ends with 1 unless the job ran in one of them.
 */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { fileURLToPath } from "node:url"

const night = new Date().toISOString()

let runs = 0
for (const name of ["instance 1", "instance 2", "instance 3"]) {
  // the runtime of this program, which is Bun
  const instance = spawn(process.execPath, [fileURLToPath(new URL("instance.ts", import.meta.url)), name, night], {
    stdio: ["ignore", "pipe", "inherit"]
  })
  instance.stdout.setEncoding("utf8").on("data", (text: string) => {
    process.stdout.write(text)
    runs += text.split("runs the job").length - 1
  })
  const [code] = await once(instance, "close")
  if (code !== 0) process.exitCode = 1
}
if (runs !== 1) process.exitCode = 1
