/**
 * `lua/record/`: what the holder of a lock publishes beside the lock; only the holder can write it.
 */
import type { LockKeys } from "../keys.ts"
import { agreed, majority, numberReply, operation, StoreCommand } from "./StoreOperation.ts"

/** The use of a record: each has its own key. */
export type RecordUse = "leader" | "result" | "tick"

/** A record, and the owner that wrote it. */
export interface LockRecord {
  readonly owner: string
  /** The fencing token of the grant under which it was written. */
  readonly token: bigint
  readonly version: number
  readonly value: string
}

/** A record, and the lock beside it at the same moment. */
export interface RecordState {
  readonly serverMicros: number
  /** The holder of the lock; empty when it is free. */
  readonly holder: string
  readonly record: LockRecord | undefined
}

type RawState = readonly [micros: string, holder: string, record: string | null]

const parse = (text: string | null): LockRecord | undefined => {
  const match = /^(\S+) (\d+) (\d+) ([^]*)$/.exec(text ?? "")
  if (match === null) return undefined
  const [, owner, token, version, value] = match
  return { owner: owner!, token: BigInt(token!), version: Number(version), value: value! }
}

const isLater = (a: LockRecord, b: LockRecord | undefined): boolean =>
  b === undefined || a.token > b.token || (a.token === b.token && a.version > b.version)

/** The latest record that any member has: a majority has been asked, so it is at least the last that a majority has. */
const latest = (states: ReadonlyArray<RecordState>, required: number): RecordState => {
  const holders = states.map(({ holder }) => holder)
  let record: LockRecord | undefined
  for (const state of states) if (state.record !== undefined && isLater(state.record, record)) record = state.record
  return {
    serverMicros: Math.max(...states.map(({ serverMicros }) => serverMicros)),
    holder: agreed(holders, required) ?? "",
    record
  }
}

export const operations = {
  write: operation("record/write", { reply: numberReply, quorum: majority }),
  read: operation<RecordState>("record/read", {
    reply: (raw) => {
      const [micros, holder, record] = raw as unknown as RawState
      return { serverMicros: Number(micros), holder, record: parse(record) }
    },
    quorum: { waitsForAll: true, combine: (states, { required }) => latest(states, required) }
  }),
  clear: operation("record/clear", { givesBack: "owner", reply: numberReply, quorum: majority })
}

/** Replies 1, or 0 when this owner does not hold the lock. */
export const write = (
  keys: LockKeys,
  use: RecordUse,
  { owner, token, value, version }: LockRecord,
  lifeMillis: number,
  publish: string
): StoreCommand<number> =>
  new StoreCommand(
    operations.write,
    [keys.lock, keys.record(use)],
    [owner, String(token), version, value, lifeMillis, publish]
  )

export const read = (keys: LockKeys, use: RecordUse): StoreCommand<RecordState> =>
  new StoreCommand(operations.read, [keys.lock, keys.record(use)], [])

/** Replies 1, or 0 when the record is not of this owner. */
export const clear = (keys: LockKeys, use: RecordUse, owner: string, publish: string): StoreCommand<number> =>
  new StoreCommand(operations.clear, [keys.lock, keys.record(use)], [owner, publish])
