/**
 * The one place where keys and channels are derived from a lock's name, exactly as Redisson does it.
 */
import { InvalidLockName } from "../LockError.ts"

/**
 * Redisson asks one thing only: whether the name contains an opening brace. If it does, the name is taken to carry its
 * hash tag; otherwise it becomes one, so that everything of a lock lives in one cluster slot.
 */
const prefixed = (prefix: string, name: string): string =>
  name.includes("{") ? `${prefix}:${name}` : `${prefix}:{${name}}`

export interface LockKeys {
  readonly lock: string
  readonly token: string
  readonly channel: string
}

export const lockKeys = (name: string): LockKeys => ({
  lock: name,
  token: prefixed("redisson_lock_token", name),
  channel: prefixed("redisson_lock__channel", name)
})

export const maxNameBytes = 1024

const utf8 = new TextEncoder()

export const checkName = (name: string): InvalidLockName | undefined => {
  const problem =
    typeof name !== "string"
      ? "it is not a string"
      : name.length === 0
        ? "it is empty"
        : // no string grows more than threefold in UTF-8, so ordinary names are not encoded here
          name.length * 3 > maxNameBytes && utf8.encode(name).length > maxNameBytes
          ? `it is longer than ${maxNameBytes} bytes`
          : name.includes("\0")
            ? "it contains a NUL character"
            : undefined
  return problem === undefined ? undefined : new InvalidLockName({ name: String(name), problem })
}
