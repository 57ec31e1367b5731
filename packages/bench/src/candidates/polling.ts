import { setTimeout as sleep } from "node:timers/promises"
import type { Held, Kind, Session } from "../Candidate.ts"
import { overPromises } from "./promises.ts"

/** Locks that expire: each is taken, renewed and released by one request, whose answer says whether that was possible. */
export interface Leases {
  readonly nextOwner: () => string
  /** Tries once; returns whether it was granted. */
  readonly tryAcquire: (kind: Kind, name: string, owner: string) => Promise<boolean>
  readonly release: (kind: Kind, name: string, owner: string) => Promise<void>
  readonly renew: (name: string, owner: string) => Promise<boolean>
}

/** How often a waiter asks. */
export const pollMillis = 100

/** Names owners that nobody else has. */
export const owners = (): (() => string) => {
  const process = crypto.randomUUID()
  let last = 0
  return () => `${process}:${++last}`
}

/** Extends every lock with its own timer and command, every third of the lease. */
export const holdWithTimers = async (
  leases: Leases,
  names: ReadonlyArray<string>,
  leaseMillis: number
): Promise<Held> => {
  let lost = 0
  const locks = await Promise.all(
    names.map(async (name) => {
      const owner = leases.nextOwner()
      if (!(await leases.tryAcquire("lock", name, owner))) throw new Error(`${name} is taken`)
      const timer = setInterval(async () => {
        if (!(await leases.renew(name, owner))) lost++
      }, leaseMillis / 3)
      return { name, owner, timer }
    })
  )
  return {
    lost: async () => lost,
    release: async () => {
      await Promise.all(
        locks.map(({ name, owner, timer }) => {
          clearInterval(timer)
          return leases.release("lock", name, owner)
        })
      )
    }
  }
}

/** Every waiter asks again and again while the lock is taken. */
export const polling = (leases: Leases, leaseMillis: number): Session => ({
  ...overPromises({
    acquire: async (name) => {
      const owner = leases.nextOwner()
      while (!(await leases.tryAcquire("lock", name, owner))) await sleep(pollMillis)
      return { name, owner }
    },
    release: ({ name, owner }) => leases.release("lock", name, owner),
    isGivenUp: () => false
  }),
  hold: (names) => holdWithTimers(leases, names, leaseMillis)
})
