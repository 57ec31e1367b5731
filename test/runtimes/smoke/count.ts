/**
 * Counts in a file that nothing protects but a lock.
 */
import { Effect } from "effect"
import { Lock } from "effect-redis-lock"
import { readFile, writeFile } from "node:fs/promises"

export const TIMES = 40

/** Adds {@link TIMES}, from several fibers. */
export const count = (name: string, file: string) =>
  Effect.forEach(
    Array.from({ length: TIMES }),
    () =>
      Lock.withLock(
        Effect.promise(async () => {
          const before = Number(await readFile(file, "utf8"))
          await new Promise((resolve) => setTimeout(resolve, 2))
          await writeFile(file, String(before + 1))
        }),
        name
      ),
    { concurrency: 4, discard: true }
  )
