import type { Command, Redis } from "ioredis"

/** The most commands that share a write, so that the server does not wait for the end of a long series. */
const LONGEST_BURST = 16

/** Writers that have sent something in this turn of the event loop. */
const used: Array<BurstWriter> = []

/**
 * Writes commands to one connection. The first of several that are sent together is written at once, so that the server begins;
 * the rest are gathered, because a write costs more than everything else that a client does for a command.
 */
export class BurstWriter {
  readonly #client: Redis
  #sent = 0
  #corked: Redis["stream"] | undefined

  constructor(client: Redis) {
    this.#client = client
  }

  /** An urgent command has been written when this returns, with all that were gathered before it. */
  write(command: Command, isUrgent = false): void {
    if (this.#sent === 0) {
      if (used.push(this) === 1) process.nextTick(flushAll)
    } else if (this.#sent % LONGEST_BURST === 1) {
      this.#corked?.uncork()
      this.#corked = this.#client.stream
      this.#corked.cork()
    }
    this.#sent++
    void this.#client.sendCommand(command)
    if (isUrgent) this.#uncork()
  }

  #uncork(): void {
    const corked = this.#corked
    this.#corked = undefined
    corked?.uncork()
  }

  flush(): void {
    this.#sent = 0
    this.#uncork()
  }
}

const flushAll = (): void => {
  try {
    for (let writer = used.pop(); writer !== undefined; writer = used.pop()) writer.flush()
  } finally {
    // one that throws must hold up neither the others nor later commands
    if (used.length > 0) process.nextTick(flushAll)
  }
}
