import { type ExecFileException, execFile } from "node:child_process"
import { readdirSync, statSync } from "node:fs"
import { fileURLToPath } from "node:url"

const project = fileURLToPath(new URL("java/", import.meta.url))

/**
 * Builds the program in `java/` where it is not built yet, or has changed. Where there is no JDK or no Maven, the tests are
 * told by INTEROP_SKIPPED why they cannot run.
 */
export default async () => {
  const missing = (await lacks("javac", ["-version"])) ?? (await lacks("mvn", ["-version"]))
  if (missing !== undefined) {
    process.env["INTEROP_SKIPPED"] = missing
    console.warn(`\nThe tests with Redisson are skipped: ${missing}\n`)
    return
  }
  if (isCurrent()) return
  const { error, output } = await execute("mvn", ["-q", "-B", "package"])
  if (error !== null) throw new Error(`mvn package failed in ${project}\n${output}`)
}

/** Why a program cannot be used, or nothing. */
const lacks = async (program: string, args: ReadonlyArray<string>): Promise<string | undefined> => {
  const { error, output } = await execute(program, args)
  return error === null ? undefined : `${program} does not run here: ${output.trim() || error.message}`
}

const execute = (program: string, args: ReadonlyArray<string>) =>
  new Promise<{ readonly error: ExecFileException | null; readonly output: string }>((resolve) => {
    execFile(program, args, { cwd: project }, (error, stdout, stderr) => resolve({ error, output: stdout + stderr }))
  })

const isCurrent = (): boolean => {
  const built = changedAt("target/interop.jar")
  return [
    "pom.xml",
    ...readdirSync(`${project}src`, { recursive: true, encoding: "utf8" }).map((file) => `src/${file}`)
  ].every((file) => changedAt(file) <= built)
}

const changedAt = (file: string): number => statSync(project + file, { throwIfNoEntry: false })?.mtimeMs ?? 0
