import { fork } from "node:child_process"
import { fileURLToPath } from "node:url"

/** A message between processes: its word says what the content is. */
export interface Message {
  readonly word: string
  readonly content?: unknown
}

/** A process of the benchmark, as its parent sees it. Its messages are kept until they are asked for. */
export class Child {
  readonly #process
  readonly #unread: Array<Message> = []
  readonly #awaited: Array<{ readonly word: string; readonly resolve: (content: unknown) => void }> = []
  readonly #gone: Promise<never>

  /** Starts a module next to this one, able to collect garbage on demand, with no warnings of peers on the terminal. */
  constructor(module: string, argument: unknown) {
    this.#process = fork(fileURLToPath(new URL(module, import.meta.url)), [JSON.stringify(argument)], {
      execArgv: [...process.execArgv.filter((option) => option !== "--expose-gc"), "--expose-gc", "--no-warnings"],
      stdio: ["ignore", "ignore", "pipe", "ipc"]
    })
    let stderr = ""
    this.#process.stderr!.on("data", (chunk) => {
      stderr += String(chunk)
    })
    this.#process.on("message", (message: Message) => {
      const index = this.#awaited.findIndex(({ word }) => word === message.word)
      if (index === -1) this.#unread.push(message)
      else this.#awaited.splice(index, 1)[0]!.resolve(message.content)
    })
    this.#gone = new Promise((_, reject) => {
      this.#process.on("error", reject)
      this.#process.on("exit", (code, signal) => {
        const reason = /^.*Error: .*$/m.exec(stderr)?.[0] ?? stderr.trim().split("\n").at(-1)
        reject(new Error(reason || `the process ended with ${signal ?? code}`))
      })
    })
    this.#gone.catch(() => {})
  }

  say(word: string, content?: unknown): void {
    this.#process.send({ word, content } satisfies Message, () => {})
  }

  /** The content of the next message with this word; fails if the process ends first. */
  hear<A>(word: string): Promise<A> {
    const index = this.#unread.findIndex((message) => message.word === word)
    if (index !== -1) return Promise.resolve(this.#unread.splice(index, 1)[0]!.content as A)
    const message = new Promise<unknown>((resolve) => this.#awaited.push({ word, resolve }))
    return Promise.race([message as Promise<A>, this.#gone])
  }

  end(): void {
    this.#process.kill("SIGKILL")
  }
}
