import type { Message } from "./Child.ts"

/** The argument with which this process was started. */
export const argument = <A>(): A => JSON.parse(process.argv[2]!) as A

export const say = (word: string, content?: unknown): void => {
  process.send!({ word, content } satisfies Message)
}

const fail = (error: unknown): void => {
  process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`, () => process.exit(1))
}

/** Handles every message with this word. */
export const listen = <A>(word: string, answer: (content: A) => Promise<void>): void => {
  process.on("message", (message: Message) => {
    if (message.word === word) answer(message.content as A).catch(fail)
  })
}

/** Exits when the parent is gone, or on failure: otherwise a library might keep the process alive. */
export const run = (main: () => Promise<void>): void => {
  process.on("disconnect", () => process.exit())
  main().catch(fail)
}
