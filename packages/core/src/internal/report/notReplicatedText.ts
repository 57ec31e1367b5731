import type * as Duration from "effect/Duration"
import { seconds } from "./telemetry/seconds.ts"

interface NotReplicated {
  readonly lock: string
  readonly wanted: number
  readonly acknowledged: number
  readonly within: Duration.Duration
  readonly disk?: "master" | undefined
}

/** What a grant lacked, and what to do about it. */
export const notReplicatedText = ({ acknowledged, disk, lock, wanted, within }: NotReplicated): string =>
  disk === undefined
    ? `Lock "${lock}" was granted, but only ${acknowledged} of the ${wanted} replica${wanted === 1 ? "" : "s"} that it needs ` +
      `acknowledged it within ${seconds(within)}, so the grant was undone. Look at the replicas (INFO replication on the master), ` +
      `give them more time (acknowledge.within), or ask for fewer.`
    : `Lock "${lock}" was granted, but did not get to the disk of the master within ${seconds(within)}, so the grant was undone. ` +
      `Look at the master's disk, or give it more time (acknowledge.within): appendfsync everysec takes up to a second.`
