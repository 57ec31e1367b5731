/**
 * Runs something as a seed decides it: what the platform leaves to chance comes from the seed.
 */
import { randomOf } from "@effect-redis-lock/playground/VirtualTime"

/**
 * Whether Effect asks for a random number to hash a function by: it does so once in a process, which must not shift what
 * everybody else is given.
 */
const isHashing = (): boolean => {
  const { stackTraceLimit } = Error
  const at: { stack?: string } = {}
  Error.stackTraceLimit = 2
  Error.captureStackTrace(at, isHashing)
  Error.stackTraceLimit = stackTraceLimit
  return at.stack!.includes("/Hash.js")
}

/** Runs synchronously, with random numbers and UUIDs from the seed, and without stack traces. */
export const decidedBy = <A>(seed: number, run: () => A): A => {
  const { random: mathRandom } = Math
  const { crypto } = globalThis
  const { stackTraceLimit } = Error
  const chance = randomOf(~seed)
  const hex = (digits: number) =>
    Math.floor(chance() * 16 ** digits)
      .toString(16)
      .padStart(digits, "0")
  // errors are values here: their stack traces are of no use, and would cost more than everything else
  Error.stackTraceLimit = 0
  Math.random = () => (isHashing() ? 0.5 : chance())
  crypto.randomUUID = () => `${hex(8)}-${hex(4)}-${hex(4)}-${hex(4)}-${hex(12)}`
  try {
    return run()
  } finally {
    Error.stackTraceLimit = stackTraceLimit
    Math.random = mathRandom
    Reflect.deleteProperty(crypto, "randomUUID")
  }
}
