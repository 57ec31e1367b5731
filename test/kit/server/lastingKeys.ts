/**
 * Whether a key stays for a while when nothing is held and nobody waits: the last token of a name, and the label of a client that is open or
 * was cut off.
 */
export const isLasting = (key: string): boolean => /^(?:redisson_lock_token|effect_redis_lock_client):/.test(key)
