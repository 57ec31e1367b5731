/**
 * Runs the tests of the suites by Vitest, as a process of its own, and says what each suite came to.
 */
import { spawn } from "node:child_process"
import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import type { Suite } from "./suites.ts"

/** The folder of the tests: this is run from `dist`. */
const folder = fileURLToPath(new URL("../..", import.meta.url))

export interface TestResult {
  readonly file: string
  /** Of the outermost group. */
  readonly group: string
  readonly name: string
  readonly status: string
  /** Why it failed. */
  readonly message: string
}

/** As Vitest writes it. */
interface Report {
  readonly testResults: ReadonlyArray<{
    readonly name: string
    readonly message: string
    readonly assertionResults: ReadonlyArray<{
      readonly ancestorTitles: ReadonlyArray<string>
      readonly fullName: string
      readonly status: string
      readonly failureMessages: ReadonlyArray<string>
    }>
  }>
}

const resultsOf = ({ testResults }: Report): ReadonlyArray<TestResult> =>
  testResults.flatMap(({ assertionResults, message, name: file }) =>
    // a file that cannot be loaded has no tests
    assertionResults.length === 0 && message !== ""
      ? [{ file, group: "", name: file, status: "failed", message }]
      : assertionResults.map(({ ancestorTitles, failureMessages, fullName, status }) => ({
          file,
          group: ancestorTitles[0] ?? "",
          name: fullName,
          status,
          message: failureMessages[0] ?? ""
        }))
  )

/** Runs all suites that are possible with this environment; Vitest writes its report into that file. */
export const runTests = (
  environment: Readonly<Record<string, string>>,
  report: string
): Promise<ReadonlyArray<TestResult>> =>
  new Promise((resolve, reject) => {
    const vitest = join(dirname(createRequire(import.meta.url).resolve("vitest/package.json")), "vitest.mjs")
    const child = spawn(
      process.execPath,
      [vitest, "run", "--config", "servers/vitest.config.ts", "--reporter=json", `--outputFile=${report}`],
      { cwd: folder, env: { ...process.env, ...environment }, stdio: ["ignore", "ignore", "inherit"] }
    )
    child.on("error", reject)
    child.on("close", () => {
      try {
        resolve(resultsOf(JSON.parse(readFileSync(report, "utf8")) as Report))
      } catch (error) {
        reject(error as Error)
      }
    })
  })

/** Of a suite that starts servers, where there is only an image. */
export const NOT_TRIED = "not tried"

/** What a suite came to, in a word or two. */
export const outcomeOf = (
  { files, group, startsServers = false }: Suite,
  tests: ReadonlyArray<TestResult>,
  isStartable: boolean
): string => {
  if (startsServers && !isStartable) return NOT_TRIED
  const ran = tests.filter(
    (test) =>
      files.some((file) => test.file.endsWith(`/${file}`)) &&
      (group === undefined || test.group.startsWith(group) || test.name === test.file) &&
      (test.status === "passed" || test.status === "failed")
  )
  const failed = ran.filter(({ status }) => status === "failed").length
  if (ran.length === 0) return "–"
  return failed === 0 ? String(ran.length) : `**${failed} of ${ran.length} fail**`
}

/** The tests that failed, and the beginning of why. */
export const failuresOf = (tests: ReadonlyArray<TestResult>): ReadonlyArray<string> =>
  tests.flatMap(({ message, name, status }) =>
    status === "failed" ? [`${name}\n    ${message.split("\n").slice(0, 3).join("\n    ")}`] : []
  )
