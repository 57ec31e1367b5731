/**
 * The one place where keys and channels are derived from a lock's name, exactly as Redisson does it; then which names and prefixes are
 * allowed: what Redis can keep, what collides with no key of another name, and what lives in one slot of a cluster.
 */
import { InvalidLockName, InvalidLockOptions } from "../../LockError.ts"
import { shown } from "../report/shown.ts"

/**
 * Redisson checks only whether the name contains an opening brace. If it does, the name is taken to carry its
 * hash tag; otherwise it becomes one, so that everything of a lock lives in one cluster slot.
 */
const tagged = (name: string): string => (name.includes("{") ? name : `{${name}}`)

const prefixed = (prefix: string, name: string): string => `${prefix}:${tagged(name)}`

/** The label of a client, by which others recognise its process; not Redisson's. */
export const clientLabelKey = (keyPrefix: string, clientId: string): string =>
  prefixed(clientLabel, keyPrefix + clientId)

const clientLabel = "effect_redis_lock_client"

/** A key of {@link clientLabelKey} that has no prefix, with this one; undefined for any other key. */
export const prefixedLabelKey = (keyPrefix: string, key: string): string | undefined =>
  key.startsWith(`${clientLabel}:{`) ? clientLabelKey(keyPrefix, key.slice(`${clientLabel}:{`.length, -1)) : undefined

/** Everything that a lock of a name has in Redis: at once what nearly every lock needs, the rest on demand. */
export class LockKeys {
  readonly lock: string
  /** The prefix of the keys of a reader's holds. */
  readonly holdsStem: string
  /** The last fencing token. */
  readonly token: string
  readonly channel: string
  /** The owners that a release hands the lock over to, oldest first; not Redisson's. */
  readonly places: string

  constructor(name: string, stem = tagged(name)) {
    this.lock = name
    this.holdsStem = stem
    this.token = `redisson_lock_token:${stem}`
    this.channel = `redisson_lock__channel:${stem}`
    this.places = `effect_redis_lock_places:${stem}`
  }

  /** The waiters of a fair lock, in order. */
  get queue(): string {
    return `redisson_lock_queue:${this.holdsStem}`
  }

  /** When each waiter of a fair lock counts as dead. */
  get timeouts(): string {
    return `redisson_lock_timeout:${this.holdsStem}`
  }

  /** Which clients with waiters of a fair lock are alive; not Redisson's. */
  get clients(): string {
    return `effect_redis_lock_clients:${this.holdsStem}`
  }

  /** The channel of a read-write lock. */
  get readWriteChannel(): string {
    return `redisson_rwlock:${this.holdsStem}`
  }

  /** When the last hold of each reader of a read-write lock ends; not Redisson's. */
  get readers(): string {
    return `effect_redis_lock_readers:${this.holdsStem}`
  }

  /** The holder's record, and its channel; not Redisson's. */
  record(use: string): string {
    return `effect_redis_lock_record:${this.holdsStem}:${use}`
  }

  /** The lease of a reader. Redisson numbers the holds of one; here all share the first. */
  readHold(owner: string): string {
    return `${this.holdsStem}:${owner}:rwlock_timeout:1`
  }
}

/** The channel of a semaphore, with ids or without. */
export const semaphoreChannel = (name: string): string => prefixed("redisson_sc", name)

/** The permits of a semaphore that are held, by id. */
export const permitIds = (name: string): string => `${tagged(name)}:timeout`

/**
 * Glob patterns that the keys of {@link permitIds} match for names that match one, and the name in such a key: without a hash tag of its
 * own, and with one. Other keys may match as well.
 */
export const permitIdsOf = (
  pattern: string
): ReadonlyArray<{ readonly pattern: string; readonly name: (key: string) => string }> => [
  { pattern: `{${pattern}}:timeout`, name: (key) => key.slice(1, -"}:timeout".length) },
  { pattern: `${pattern}:timeout`, name: (key) => key.slice(0, -":timeout".length) }
]

/** Since when clients wait for permits, and how many each wants; not Redisson's. */
export const permitPlaces = (name: string): readonly [places: string, wants: string] => [
  prefixed("effect_redis_lock_permit_places", name),
  prefixed("effect_redis_lock_permit_wants", name)
]

/** The marker of one grant of anonymous permits; not Redisson's. */
export const grantMarker = (name: string, grant: string): string =>
  `${prefixed("effect_redis_lock_grant", name)}:${grant}`

/** The channel of a latch: the one place where Redisson does not look for a brace. */
export const latchChannel = (name: string): string => `redisson_countdownlatch__channel__{${name}}`

const maxNameBytes = 1024

const utf8 = new TextEncoder()

/** The problem that keeps a text from being a name or a prefix. */
const problemOf = (text: string): string | undefined => {
  // no string grows more than threefold in UTF-8, so ordinary names are not encoded here
  if (text.length * 3 > maxNameBytes && utf8.encode(text).length > maxNameBytes) {
    return `it is longer than ${maxNameBytes} bytes`
  }
  if (text.includes("\0")) return "it contains a NUL character"
  // all lone halves of surrogate pairs are sent as the same three bytes
  return text.isWellFormed() ? undefined : "it is not well-formed Unicode: it contains an unpaired surrogate"
}

/** The problem with an option that becomes a part of keys. */
export const checkText = (option: "keyPrefix" | "pattern", text: unknown): InvalidLockOptions | undefined => {
  const problem = typeof text === "string" ? problemOf(text) : `${shown(text)} is not a string`
  return problem === undefined ? undefined : new InvalidLockOptions({ option, problem })
}

export const checkName = (name: unknown): InvalidLockName | undefined => {
  if (typeof name !== "string") return new InvalidLockName({ lock: shown(name), problem: "it is not a string" })
  const problem = name.length === 0 ? "it is empty" : problemOf(name)
  return problem === undefined ? undefined : new InvalidLockName({ lock: name, problem })
}

/** Keys of Redisson that belong to another name; channels are not keys. */
const foreignKey = /^redisson_lock_(?:token|queue|timeout):(.*\{.*)$/s

/** The name inside the braces, if the whole name is one hash tag: Redisson derives the same keys from both. */
const wholeTag = /^\{([^{]+)\}$/

/**
 * Two names must not share a key without anybody noticing. Every key is composed of a fixed text and the name, with braces around
 * it where it has none, so only these can: a name and its tag alone (`a` and `{a}`), and a name that is itself such a key.
 * Where the one has a string, a hash or a list, and the other another type, Redis itself refuses the second.
 */
export const checkCollision = (name: string, key: string): InvalidLockName | undefined => {
  const problem = (problem: string) => new InvalidLockName({ lock: name, problem })
  const other = wholeTag.exec(key)?.[1]
  if (other !== undefined) {
    return problem(
      `Redisson derives the same keys from it as from ${shown(other)}. Leave the braces out, or add something to them, as in ` +
        `{orders}:5`
    )
  }
  if (key.startsWith("redisson_lock_")) {
    const tagged = foreignKey.exec(key)?.[1]
    if (tagged !== undefined) return problem(`it is a key of the name ${shown(wholeTag.exec(tagged)?.[1] ?? tagged)}`)
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
