import type { Session } from "../../Candidate.ts"
import { overPromises } from "../../candidates/promises.ts"

/**
 * Locks that a server grants to a session, a connection or a lease, and frees with it. Each holder and each waiter has a session of
 * its own; idle sessions are reused.
 */
export const inSessions = <S>(locks: {
  readonly open: () => Promise<S>
  /** Waits until the lock is granted; returns what is needed to free it. */
  readonly take: (session: S, name: string) => Promise<() => Promise<unknown>>
}): Session => {
  const idle: Array<S> = []
  const acquire = async (name: string): Promise<() => Promise<void>> => {
    const session = idle.pop() ?? (await locks.open())
    const free = await locks.take(session, name)
    return async () => {
      await free()
      idle.push(session)
    }
  }
  return {
    ...overPromises({ acquire, release: (release) => release(), isGivenUp: () => false }),
    hold: async (names) => {
      const releases = await Promise.all(names.map(acquire))
      return {
        lost: async () => 0,
        release: async () => {
          await Promise.all(releases.map((release) => release()))
        }
      }
    }
  }
}
