import type { Command, Redis } from "ioredis"

/** So many commands at most share a write, so that the server does not wait for the last of a long series. */
const LONGEST_BURST = 16

/** Outlets through which something was sent since the event loop last came round. */
const used: Array<Outlet> = []

/**
 * Sends commands to one server. The first of several that are sent in one go is written at once, so that the server begins;
 * those that follow are gathered, because a write costs more than all else that a client does for a command.
 */
export class Outlet {
  readonly client: Redis
  #count = 0
  #stream: Redis["stream"] | undefined

  constructor(client: Redis) {
    this.client = client
  }

  send(command: Command): void {
    if (this.#count === 0) {
      if (used.push(this) === 1) process.nextTick(flushAll)
    } else if (this.#count % LONGEST_BURST === 1) {
      this.#stream?.uncork()
      this.#stream = this.client.stream
      this.#stream.cork()
    }
    this.#count++
    void this.client.sendCommand(command)
  }

  flush(): void {
    this.#count = 0
    this.#stream?.uncork()
    this.#stream = undefined
  }
}

const flushAll = (): void => {
  for (const outlet of used) outlet.flush()
  used.length = 0
}
