import type { Place } from "../../Place.ts"

/** A server of a compared system, running for one run of the benchmark. */
export interface RunningServer {
  /** Its name and version. */
  readonly version: string
  readonly place: Place
  readonly clear: () => Promise<void>
  readonly stop: () => Promise<void>
}

/** How a system's server is started, with one setting. */
export interface Server {
  /** What is set, as its documentation names it. */
  readonly setting: string
  /** Why it cannot be started on this machine, and how that can be changed. */
  readonly missing: () => Promise<string | undefined>
  readonly start: () => Promise<RunningServer>
}
