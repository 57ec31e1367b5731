/**
 * Whether a dual function of (value, options?) was called with its value first. A single plain object is its options, for
 * `pipe`: neither a lock nor a name is one.
 */
export const isDataFirst = (args: IArguments): boolean => args.length > 1 || !isPlainObject(args[0])

const isPlainObject = (u: unknown): boolean => {
  if (typeof u !== "object" || u === null) return false
  const prototype: unknown = Object.getPrototypeOf(u)
  return prototype === Object.prototype || prototype === null
}

/** The same for (semaphore, permits, options?): a leading number is the permits. */
export const isDataFirstOfPermits = (args: IArguments): boolean =>
  typeof args[0] !== "number" || typeof args[1] === "number"
