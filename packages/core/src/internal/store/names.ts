/**
 * Which names a lock may have, and which prefixes: what Redis can keep, what collides with no key of another name, and what
 * lives in one slot of a cluster.
 */
import { InvalidLockName, InvalidLockOptions } from "../../LockError.ts"
import { shown } from "../report/shown.ts"
import type { LockKeys } from "./keys.ts"

export const maxNameBytes = 1024

const utf8 = new TextEncoder()

/** The problem that keeps a text from being a name or a prefix. */
export const problemOf = (text: string): string | undefined => {
  // no string grows more than threefold in UTF-8, so ordinary names are not encoded here
  if (text.length * 3 > maxNameBytes && utf8.encode(text).length > maxNameBytes) {
    return `it is longer than ${maxNameBytes} bytes`
  }
  if (text.includes("\0")) return "it contains a NUL character"
  // all lone halves of surrogate pairs are sent as the same three bytes
  return text.isWellFormed() ? undefined : "it is no well-formed Unicode: half of a surrogate pair stands alone"
}

export const checkPrefix = (prefix: unknown): InvalidLockOptions | undefined => {
  const problem = typeof prefix === "string" ? problemOf(prefix) : `${shown(prefix)} is not a string`
  return problem === undefined ? undefined : new InvalidLockOptions({ option: "keyPrefix", problem })
}

export const checkName = (name: unknown): InvalidLockName | undefined => {
  if (typeof name !== "string") return new InvalidLockName({ lock: shown(name), problem: "it is not a string" })
  const problem = name.length === 0 ? "it is empty" : problemOf(name)
  return problem === undefined ? undefined : new InvalidLockName({ lock: name, problem })
}

/** Keys of Redisson that belong to another name; channels are not keys. */
const foreignKey = /^redisson_lock_(?:token|queue|timeout):(.*\{.*)$/s

/** The name inside the braces, if the whole name is one hash tag: Redisson derives the same keys from both. */
const untagged = (name: string): string | undefined =>
  name.length > 2 && name.lastIndexOf("{") === 0 && name.endsWith("}") ? name.slice(1, -1) : undefined

/**
 * Two names must not share a key without anybody noticing. Every key is composed of a fixed text and the name, with braces around
 * it where it has none, so only these can: a name and its tag alone (`a` and `{a}`), and a name that is itself such a key.
 * Where the one has a string, a hash or a list, and the other another type, Redis itself refuses the second.
 */
export const checkCollision = (name: string, key: string): InvalidLockName | undefined => {
  const problem = (problem: string) => new InvalidLockName({ lock: name, problem })
  const other = untagged(key)
  if (other !== undefined) {
    return problem(
      `Redisson derives the same keys from it as from ${shown(other)}. Leave the braces out, or add something to them, as in ` +
        `{orders}:5`
    )
  }
  if (key.startsWith("redisson_lock_")) {
    const tagged = foreignKey.exec(key)?.[1]
    if (tagged !== undefined) return problem(`it is a key of the name ${shown(untagged(tagged) ?? tagged)}`)
  }
  if (key.startsWith("effect_redis_lock_")) return problem("this begins the names of keys of this library")
  return /:rwlock_timeout:\d+$/.test(key) ? problem("it is the key of a reader's hold") : undefined
}

/**
 * Redisson's rule keeps everything of a name together unless the name has braces that are no hash tag. That matters where
 * keys have slots, and nowhere else.
 */
export const checkSlot = (name: string, keys: LockKeys, slot: (key: string) => number): InvalidLockName | undefined => {
  if (!keys.lock.includes("{") && !keys.lock.includes("}")) return undefined
  const home = slot(keys.lock)
  if (slot(keys.token) === home && slot(keys.channel) === home) return undefined
  return new InvalidLockName({
    lock: name,
    problem:
      "its braces make no hash tag, so on a Redis Cluster its keys would live in different slots. Leave the braces out, or " +
      "enclose a part that is not empty, with no brace before it, as in {orders}:5"
  })
}
