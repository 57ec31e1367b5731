/**
 * The one place where keys and channels are derived from a lock's name, exactly as Redisson does it.
 */

/**
 * Redisson checks only whether the name contains an opening brace. If it does, the name is taken to carry its
 * hash tag; otherwise it becomes one, so that everything of a lock lives in one cluster slot.
 */
const prefixed = (prefix: string, name: string): string =>
  name.includes("{") ? `${prefix}:${name}` : `${prefix}:{${name}}`

/** The label of a client, by which others recognise its process, and the channel on which it hears from them; not Redisson's. */
export const clientLabelKey = (keyPrefix: string, clientId: string): string =>
  prefixed(clientLabel, keyPrefix + clientId)

const clientLabel = "effect_redis_lock_client"

/** A key of {@link clientLabelKey} that has no prefix, with this one; undefined for any other key. */
export const prefixedLabelKey = (keyPrefix: string, key: string): string | undefined =>
  key.startsWith(`${clientLabel}:{`) ? clientLabelKey(keyPrefix, key.slice(`${clientLabel}:{`.length, -1)) : undefined

/**
 * Everything that a lock of a name has in Redis, composed on demand.
 */
export class LockKeys {
  readonly lock: string

  constructor(name: string) {
    this.lock = name
  }

  /** The last fencing token. */
  get token(): string {
    return prefixed("redisson_lock_token", this.lock)
  }

  get channel(): string {
    return prefixed("redisson_lock__channel", this.lock)
  }

  /** The waiters of a fair lock, in order. */
  get queue(): string {
    return prefixed("redisson_lock_queue", this.lock)
  }

  /** When each waiter of a fair lock counts as dead. */
  get timeouts(): string {
    return prefixed("redisson_lock_timeout", this.lock)
  }

  /** Which clients with waiters of a fair lock are alive; not Redisson's. */
  get clients(): string {
    return prefixed("effect_redis_lock_clients", this.lock)
  }

  /** The owners that a release hands the lock over to, oldest first; not Redisson's. */
  get places(): string {
    return prefixed("effect_redis_lock_places", this.lock)
  }

  /** The channel of a read-write lock. */
  get readWriteChannel(): string {
    return prefixed("redisson_rwlock", this.lock)
  }

  /** Which clients have a writer that waits for a read-write lock; not Redisson's. */
  get writers(): string {
    return prefixed("effect_redis_lock_writers", this.lock)
  }

  /** When the last hold of each reader of a read-write lock ends; not Redisson's. */
  get readers(): string {
    return prefixed("effect_redis_lock_readers", this.lock)
  }

  /** The holder's record, and its channel; not Redisson's. */
  record(use: string): string {
    return `${prefixed("effect_redis_lock_record", this.lock)}:${use}`
  }

  /** The prefix of the keys of a reader's holds. */
  get holdsStem(): string {
    return this.lock.includes("{") ? this.lock : `{${this.lock}}`
  }

  /** One hold of a reader; the first is number 1. */
  readHold(owner: string, number: number): string {
    return `${this.holdsStem}:${owner}:rwlock_timeout:${number}`
  }
}

/** The channel of a semaphore, with ids or without. */
export const semaphoreChannel = (name: string): string => prefixed("redisson_sc", name)

/** The permits of a semaphore that are held, by id. */
export const permitIds = (name: string): string => (name.includes("{") ? `${name}:timeout` : `{${name}}:timeout`)

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
