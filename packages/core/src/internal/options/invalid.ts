import type { InvalidLockName, InvalidLockOptions } from "../../LockError.ts"

/** What is wrong with what the user has passed. */
export type Invalid = InvalidLockName | InvalidLockOptions

export const isInvalid = <A extends object>(checked: A | Invalid): checked is Invalid => "_tag" in checked
