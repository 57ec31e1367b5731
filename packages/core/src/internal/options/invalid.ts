import type { InvalidLockName, InvalidLockOptions } from "../../LockError.ts"

/** An error in the user's input. */
export type Invalid = InvalidLockName | InvalidLockOptions

export const isInvalid = <A extends object>(checked: A | Invalid): checked is Invalid => "_tag" in checked
