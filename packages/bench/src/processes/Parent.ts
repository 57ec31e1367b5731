import type { Message } from "./Child.ts"

/** What this process was started with. */
export const argument = <A>(): A => JSON.parse(process.argv[2]!) as A

export const say = (word: string, content?: unknown): void => {
  process.send!({ word, content } satisfies Message)
}

export const hear = (word: string): Promise<void> =>
  new Promise((resolve) => {
    const listener = (message: Message) => {
      if (message.word !== word) return
      process.off("message", listener)
      resolve()
    }
    process.on("message", listener)
  })

/** A process whose parent is gone, or which has failed, ends: libraries may hold it otherwise. */
export const run = (main: () => Promise<void>): void => {
  process.on("disconnect", () => process.exit())
  main().catch((error) => {
    process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`, () => process.exit(1))
  })
}
