/**
 * Names that no other test has.
 */
const run = crypto.randomUUID().slice(0, 8)
let names = 0

/** A new name, which tells whose it is. */
export const freshName = (whose = "lock"): string => `${whose}:${run}:${++names}`
