import type { Redis } from "ioredis"
import type { Kind, Library } from "../Candidate.ts"
import { dataCommands } from "./dataCommands.ts"
import { overPromises } from "./promises.ts"
import { holdWithTimers } from "./rawHash.ts"
import { channelOf, openRawScripts, type RawScripts } from "./rawScripts.ts"

/** The waiters of this process for one lock, first come, first served; the first sends a request on every release message. */
class Line {
  readonly #scripts: RawScripts
  readonly #name: string
  readonly #waiters: Array<{ readonly kind: Kind; readonly owner: string; readonly granted: () => void }> = []
  #asking = false
  #askAgain = false
  /** Release messages so far. */
  heard = 0

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

  hear(): void {
    this.heard++
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
    const lines = new Map<string, Line>()
    let subscriber: Redis | undefined

    /** Subscribes to a lock's messages for its first waiter, and stays subscribed. */
    const openLine = async (name: string): Promise<Line> => {
      if (subscriber === undefined) {
        subscriber = scripts.client.duplicate()
        subscriber.on("message", (_channel: string, name: string) => lines.get(name)?.hear())
      }
      await subscriber.subscribe(channelOf(name))
      const line = lines.get(name) ?? new Line(scripts, name)
      lines.set(name, line)
      return line
    }

    return {
      ...overPromises({
        acquire: async (name, kind) => {
          const owner = scripts.nextOwner()
          let line = lines.get(name)
          const heard = line?.heard
          // While others wait, a request would jump the queue.
          if (line?.isEmpty !== false && (await scripts.tryAcquire(kind, name, owner))) return { kind, name, owner }
          line ??= await openLine(name)
          const isFirst = line.isEmpty
          const granted = line.join(kind, owner)
          // A request is pointless unless a release was announced since the denied one was sent.
          if (isFirst && line.heard !== heard) void line.ask()
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
