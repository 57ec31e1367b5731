import type { Operation } from "../../LockStore.ts"

/**
 * One operation with its keys and arguments, ready to run.
 */
export interface StoreCommand {
  readonly operation: Operation
  readonly keys: ReadonlyArray<string>
  readonly args: ReadonlyArray<string | number>
}
