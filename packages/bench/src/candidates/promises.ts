import type { Kind, Session, Worker } from "../Candidate.ts"

/** Workers and waiters for candidates whose functions return promises. */
export const overPromises = <Grant>(library: {
  readonly acquire: (name: string, kind: Kind) => Promise<Grant>
  readonly release: (grant: Grant) => Promise<unknown>
  /** Whether the library gave up because the lock stayed taken: the worker then tries again. */
  readonly isGivenUp: (error: unknown) => boolean
}): Pick<Session, "work" | "wait"> => {
  const { acquire, isGivenUp, release } = library

  const acquireAtLast = async (name: string, worker: Worker): Promise<Grant> => {
    while (true) {
      try {
        return await acquire(name, worker.kind)
      } catch (error) {
        if (!isGivenUp(error)) throw error
        worker.gaveUp()
      }
    }
  }

  return {
    work: async (worker) => {
      for (let name = worker.next(); name !== undefined; name = worker.next()) {
        const grant = await acquireAtLast(name, worker)
        if (worker.section !== undefined) await new Promise<void>(worker.section)
        await release(grant)
        if (worker.think !== undefined) await new Promise<void>(worker.think)
      }
    },
    wait: (name, waiters) => {
      let failed = 0
      for (let i = 0; i < waiters; i++) {
        acquire(name, "lock").catch(() => {
          failed++
        })
      }
      return { failed: () => failed }
    }
  }
}

/** For libraries that extend a lock only during a section: holds by staying in one. */
export const holdBySections = async (
  names: ReadonlyArray<string>,
  using: (name: string, section: (lost: AbortSignal) => Promise<void>) => Promise<unknown>
): Promise<{ readonly lost: () => Promise<number>; readonly release: () => Promise<void> }> => {
  const signals: Array<AbortSignal> = []
  let leave = () => {}
  const left = new Promise<void>((resolve) => {
    leave = resolve
  })
  const sections: Array<Promise<unknown>> = []
  await Promise.all(
    names.map(
      (name) =>
        new Promise<void>((entered, failed) => {
          const section = using(name, (lost) => {
            signals.push(lost)
            entered()
            return left
          })
          section.catch(failed)
          sections.push(section)
        })
    )
  )
  return {
    lost: async () => signals.filter((signal) => signal.aborted).length,
    release: async () => {
      leave()
      await Promise.all(sections)
    }
  }
}
