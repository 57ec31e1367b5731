import { execFile } from "node:child_process"
import { createHash } from "node:crypto"
import { readdir, readFile, writeFile } from "node:fs/promises"
import { delimiter, join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"

const project = fileURLToPath(new URL("../../java/", import.meta.url))
const builtFrom = join(project, "target", "built-from")

export const classPath = [join(project, "target", "bench.jar"), join(project, "target", "lib", "*")].join(delimiter)

const run = promisify(execFile)

const sourcesHash = async (): Promise<string> => {
  const sources = (await readdir(join(project, "src"), { recursive: true })).filter((file) => file.endsWith(".java"))
  const hash = createHash("sha256")
  for (const file of ["pom.xml", ...sources.sort().map((file) => join("src", file))]) {
    hash.update(file).update(await readFile(join(project, file)))
  }
  return hash.digest("hex")
}

/** The first line that says what is wrong, as the error's message is mostly the command. */
const reasonOf = (error: unknown): string => {
  const { stderr = "", stdout = "" } = error as { readonly stderr?: string; readonly stdout?: string }
  return /^\[ERROR\] .*$/m.exec(stdout + stderr)?.[0] ?? String(error).split("\n")[0]!
}

/** Builds the Java program unless it was built from these sources. Returns the reason if that is not possible. */
export const buildJava = async (): Promise<string | undefined> => {
  const tools = { java: "-version", mvn: "-version" }
  for (const [tool, option] of Object.entries(tools)) {
    try {
      await run(tool, [option])
    } catch {
      return `there is no working ${tool} here`
    }
  }
  const hash = await sourcesHash()
  if ((await readFile(builtFrom, "utf8").catch(() => "")) === hash) return undefined
  try {
    await run("mvn", ["-q", "-B", "package"], { cwd: project, timeout: 300_000 })
    await writeFile(builtFrom, hash)
    return undefined
  } catch (error) {
    return `the Java program could not be built: ${reasonOf(error)}`
  }
}
