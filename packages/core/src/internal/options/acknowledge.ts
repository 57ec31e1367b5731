import type { AcknowledgeOptions } from "../../AcquireOptions.ts"
import { InvalidLockOptions } from "../../LockError.ts"
import { shown } from "../report/shown.ts"
import { parseTimeout } from "./durations.ts"

/** The replicas and disks that must have a grant before it counts. */
export interface Acknowledgement {
  readonly replicas: number | "all" | "majority"
  readonly fsync: "none" | "master" | "replicas"
  readonly withinMillis: number
}

const invalid = (option: string, problem: string) =>
  new InvalidLockOptions({ option: `acknowledge.${option}`, problem })

/** The option `acknowledge`, checked. */
export const parseAcknowledge = (given: AcknowledgeOptions): Acknowledgement | InvalidLockOptions => {
  if (typeof given !== "object" || given === null) {
    return new InvalidLockOptions({ option: "acknowledge", problem: `${shown(given)} is not an object` })
  }
  const { fsync = "none", replicas, within = 500 } = given
  if (fsync !== "none" && fsync !== "master" && fsync !== "replicas") {
    return invalid("fsync", `${shown(fsync)} is neither "none", "master" nor "replicas"`)
  }
  const least = fsync === "master" ? 0 : 1
  if (replicas !== "all" && replicas !== "majority" && !(Number.isSafeInteger(replicas) && replicas >= least)) {
    return invalid(
      "replicas",
      `${shown(replicas)} is neither "all", "majority" nor a whole number of at least ${least}`
    )
  }
  const withinMillis = parseTimeout("acknowledge.within", within)
  return typeof withinMillis === "number" ? { replicas, fsync, withinMillis } : withinMillis
}

/** How many replicas must have a grant while this many are `online`; at least one for `"all"` and `"majority"`. */
export const wantedOf = (replicas: Acknowledgement["replicas"], online: number): number =>
  replicas === "all" ? Math.max(1, online) : replicas === "majority" ? Math.floor(online / 2) + 1 : replicas
