/**
 * A reporter of Vitest that ends with the warnings which no test expects, one line for each text and file.
 */
import type { Reporter, TestModule } from "vitest/node"

declare module "vitest" {
  interface TaskMeta {
    /** What has been warned of in a test that does not expect it; see `logs.ts`. */
    unexpectedWarnings?: ReadonlyArray<string>
  }
}

const MOST_LINES = 20

export const unexpectedWarnings: Reporter = {
  onTestRunEnd: (modules: ReadonlyArray<TestModule>) => {
    const seen = new Map<string, { readonly test: string; times: number }>()
    for (const module of modules) {
      for (const test of module.children.allTests()) {
        for (const warning of test.meta().unexpectedWarnings ?? []) {
          const line = `${module.relativeModuleId}: ${warning.split("\n")[0]}`
          const known = seen.get(line)
          if (known === undefined) seen.set(line, { test: test.fullName, times: 1 })
          else known.times++
        }
      }
    }
    if (seen.size === 0) return
    console.log("\nWarnings that no test expects (declare them by expectWarning, or in run/expectedWarnings.ts):")
    for (const [line, { test, times }] of [...seen].slice(0, MOST_LINES)) {
      console.log(`  ${line} (${times}, first in: ${test})`)
    }
    if (seen.size > MOST_LINES) console.log(`  and ${seen.size - MOST_LINES} others`)
  }
}
