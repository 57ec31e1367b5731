import type { Redis } from "ioredis"
import type { Kind, Library } from "../Candidate.ts"
import { dataCommands } from "./dataCommands.ts"
import { overPromises } from "./promises.ts"
import { holdWithTimers } from "./polling.ts"
import { channelOf, openRawScripts, type RawScripts } from "./rawScripts.ts"

/** The waiters of this process for one lock, first come, first served; the first sends a request on every release message. */
class WaitQueue {
  readonly #scripts: RawScripts
  readonly #name: string
  readonly #waiters: Array<{ readonly kind: Kind; readonly owner: string; readonly granted: () => void }> = []
  #asking = false
  #askAgain = false
  /** Release messages so far. */
  messagesSeen = 0

  constructor(scripts: RawScripts, name: string) {
    this.#scripts = scripts
    this.#name = name
  }

  get isEmpty(): boolean {
    return this.#waiters.length === 0
  }

  join(kind: Kind, owner: string): Promise<void> {
    return new Promise((granted) => this.#waiters.push({ kind, owner, granted }))
  }

  onMessage(): void {
    this.messagesSeen++
    void this.ask()
  }

  async ask(): Promise<void> {
    if (this.#asking) {
      this.#askAgain = true
      return
    }
    this.#asking = true
    do {
      this.#askAgain = false
      const first = this.#waiters[0]
      if (first !== undefined && (await this.#scripts.tryAcquire(first.kind, this.#name, first.owner))) {
        this.#waiters.shift()
        first.granted()
        // a shared lock may have room for the next waiter as well
        if (first.kind === "read" || first.kind === "semaphore") this.#askAgain = true
      }
    } while (this.#askAgain)
    this.#asking = false
  }
}

export const candidate: Library = {
  insideScripts: dataCommands,
  open: async ({ leaseMillis, port }) => {
    const scripts = await openRawScripts(port, leaseMillis)
    const queues = new Map<string, WaitQueue>()
    let subscriber: Redis | undefined

    /** Subscribes to a lock's messages for its first waiter, and stays subscribed. */
    const openQueue = async (name: string): Promise<WaitQueue> => {
      if (subscriber === undefined) {
        subscriber = scripts.client.duplicate()
        subscriber.on("message", (_channel: string, name: string) => queues.get(name)?.onMessage())
      }
      await subscriber.subscribe(channelOf(name))
      const queue = queues.get(name) ?? new WaitQueue(scripts, name)
      queues.set(name, queue)
      return queue
    }

    return {
      ...overPromises({
        acquire: async (name, kind) => {
          const owner = scripts.nextOwner()
          let queue = queues.get(name)
          const messagesSeen = queue?.messagesSeen
          // While others wait, a request would jump the queue.
          if (queue?.isEmpty !== false && (await scripts.tryAcquire(kind, name, owner))) return { kind, name, owner }
          queue ??= await openQueue(name)
          const isFirst = queue.isEmpty
          const granted = queue.join(kind, owner)
          // A request is pointless unless a release was announced since the denied one was sent.
          if (isFirst && queue.messagesSeen !== messagesSeen) void queue.ask()
          await granted
          return { kind, name, owner }
        },
        release: ({ kind, name, owner }) => scripts.release(kind, name, owner),
        isGivenUp: () => false
      }),
      hold: (names) => holdWithTimers(scripts, names, leaseMillis)
    }
  }
}
