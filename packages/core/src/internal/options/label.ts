/**
 * The label of a client, by which people recognise its process.
 */
import { InvalidLockOptions } from "../../LockError.ts"
import { shown } from "../report/shown.ts"

const longestLabel = 256

/** What Node.js, Bun and Deno tell about a process. */
interface RunningProcess {
  readonly pid?: number
  readonly argv?: ReadonlyArray<string>
  readonly getBuiltinModule?: (id: "node:os") => { readonly hostname: () => string } | undefined
}

const hostOf = (process: RunningProcess | undefined): string | undefined => {
  try {
    // without an import, as browsers have no such module
    return process?.getBuiltinModule?.("node:os")?.hostname()
  } catch {
    // Deno may forbid it
    return undefined
  }
}

/** Host, pid and program: `web-3/4711/server.js`. Unknown parts are left out. */
export const defaultLabel = (): string => {
  const { process } = globalThis as { readonly process?: RunningProcess }
  const program = process?.argv?.[1]?.split(/[/\\]/).at(-1)
  return [hostOf(process), process?.pid, program]
    .filter((part) => part !== undefined && part !== "")
    .join("/")
    .slice(0, longestLabel)
}

export const checkLabel = (label: unknown): InvalidLockOptions | undefined => {
  const problem =
    typeof label !== "string"
      ? `${shown(label)} is not a string`
      : label.length > longestLabel
        ? `it is longer than ${longestLabel} characters`
        : undefined
  return problem === undefined ? undefined : new InvalidLockOptions({ option: "label", problem })
}

/** A label in the form that Redis accepts as a connection name: printable ASCII without spaces. */
export const connectionName = (label: string): string => label.replace(/[^!-~]+/g, "-")
