/**
 * Whether a dual function of (value, options?) was given its value first. A plain object alone is its options, to be piped into:
 * neither a lock nor a name is one.
 */
export const isDataFirst = (args: IArguments): boolean => args.length > 1 || !isPlainObject(args[0])

const isPlainObject = (u: unknown): boolean => {
  if (typeof u !== "object" || u === null) return false
  const prototype: unknown = Object.getPrototypeOf(u)
  return prototype === Object.prototype || prototype === null
}

/** The same of (semaphore, permits, options?): a number that no number follows is the permits. */
export const isDataFirstOfPermits = (args: IArguments): boolean =>
  typeof args[0] !== "number" || typeof args[1] === "number"
