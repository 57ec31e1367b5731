/**
 * Keeps what Effect logs in a test and what goes to the console, and prints it where the test fails. A warning that the test
 * does not expect is passed on to the reporter (`unexpectedWarnings.ts`), which prints it also where all tests pass.
 */
import { Effect, Logger, LogLevel } from "effect"
import { afterEach, assert, beforeEach, type TestContext } from "vitest"
import { expectedWarnings } from "./expectedWarnings.ts"

interface Entry {
  readonly isWarning: boolean
  readonly message: string
  /** All of it, with cause and annotations, where it is not printed already. */
  readonly line: string | undefined
}

let entries: Array<Entry> = []
let expected: Array<RegExp> = []

const recorder = Logger.make((options) => {
  entries.push({
    isWarning: LogLevel.isGreaterThanOrEqualTo(options.logLevel, "Warn"),
    message: [options.message].flat().map(String).join(" "),
    line: Logger.formatSimple.log(options)
  })
})

// the set that every fiber has which is given no other
const loggers = Effect.runSync(Effect.service(Logger.CurrentLoggers)) as Set<Logger.Logger<unknown, unknown>>
loggers.delete(Logger.defaultLogger)
loggers.add(recorder)

// what goes there is printed by Vitest where the test fails
for (const method of ["warn", "error"] as const) {
  const print = console[method].bind(console)
  console[method] = (...words) => {
    entries.push({ isWarning: true, message: words.map(String).join(" "), line: undefined })
    print(...words)
  }
}

/** What is logged goes on to the recorder of this module. Fails where Effect's default loggers cannot be replaced like this. */
const isRecording = (): boolean => {
  const before = entries.length
  Effect.runSync(Effect.logInfo("recorded"))
  return entries.splice(before).length === 1
}
if (!isRecording()) throw new Error("Effect's default logger is not the one that run/logs.ts has put in its place")

/** Declares that this test makes the library warn so, and makes the test fail where it does not. */
export const expectWarning = (message: RegExp): void => void expected.push(message)

// Tests that run at the same time are one batch, as nobody knows which of them has logged something.
let active = 0
let hasFailed = false

/** To be called for every file of tests: the files of one worker share this module. */
export const recordLogs = (): void => {
  beforeEach((context: TestContext) => {
    if (active++ === 0) {
      entries = []
      expected = []
      hasFailed = false
    }
    context.onTestFailed(() => {
      for (const { line } of entries) if (line !== undefined) console.log(line)
    })
  })

  afterEach(({ task }: TestContext) => {
    hasFailed ||= task.result?.state === "fail"
    // a failure is enough
    if (--active > 0 || hasFailed) return
    const warnings = entries.filter(({ isWarning }) => isWarning)
    const allowed = [
      ...expected,
      ...expectedWarnings.filter(({ files }) => task.file.name.startsWith(files)).flatMap(({ messages }) => messages)
    ]
    const unexpected = warnings.filter(({ message }) => !allowed.some((pattern) => pattern.test(message)))
    if (unexpected.length > 0) task.meta.unexpectedWarnings = unexpected.map(({ message }) => message)
    for (const pattern of expected) {
      assert.isTrue(
        warnings.some(({ message }) => pattern.test(message)),
        `nobody has warned of ${pattern}`
      )
    }
  })
}
