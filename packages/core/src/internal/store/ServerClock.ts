/**
 * What a client knows about a server's clock. Every reply that contains the server's time bounds how far that clock is ahead of
 * ours: the server read it after we had sent the command and before we read the reply. Bounds that agree narrow each other;
 * bounds that contradict each other mean that a clock was stepped, and the newer ones win.
 */

/** How fast two clocks may drift apart: twice the most that NTP corrects (500 ppm). */
const driftRate = 0.001

export class ServerClock {
  /** Server time less our monotonic time, microseconds: bounds as of `learntAt`. */
  #least = Number.NEGATIVE_INFINITY
  #most = Number.POSITIVE_INFINITY
  /** When it was last learnt, our monotonic milliseconds. */
  learntAt = 0

  /** Takes note of the server's time in a reply. Ours are monotonic milliseconds. */
  learn(serverMicros: number, sentAt: number, receivedAt: number): void {
    const least = serverMicros - receivedAt * 1000
    const most = serverMicros - sentAt * 1000
    const drift = (receivedAt - this.learntAt) * 1000 * driftRate
    const knownLeast = this.#least - drift
    const knownMost = this.#most + drift
    const agrees = least <= knownMost && most >= knownLeast
    this.#least = agrees ? Math.max(least, knownLeast) : least
    this.#most = agrees ? Math.min(most, knownMost) : most
    this.learntAt = receivedAt
  }

  /**
   * The server's time at one of our times, microseconds: never ahead of it unless the server's clock was set back. Negative
   * infinity while nothing is known.
   */
  microsAt(millis: number): number {
    return this.#least + millis * 1000 - Math.max(0, millis - this.learntAt) * 1000 * driftRate
  }

  /**
   * The server's time at one of our times, microseconds, at the latest: what a reply cannot tell of the time that the command took is
   * added, what the clocks may have drifted apart since is not. Infinity while nothing is known.
   */
  latestMicrosAt(millis: number): number {
    return this.#most + millis * 1000
  }
}

/** At most this many servers: a forgotten clock is learnt again from one command. */
const maxClocks = 1000

/** The clocks of all servers of a store, by the server's name. */
export class ServerClocks {
  /** Our monotonic time, milliseconds. */
  readonly now: () => number
  readonly #serverOf: (key: string) => string
  readonly #clocks = new Map<string, ServerClock>()
  #lastServer: string | undefined
  #lastClock = new ServerClock()

  /** `serverOf` names the server that keeps a key now. */
  constructor(now: () => number, serverOf: (key: string) => string) {
    this.now = now
    this.#serverOf = serverOf
  }

  /** The clock of the server that keeps a key. */
  of(key: string): ServerClock {
    const server = this.#serverOf(key)
    // nearly always the same one
    if (server !== this.#lastServer) {
      this.#lastServer = server
      const known = this.#clocks.get(server)
      if (known === undefined && this.#clocks.size === maxClocks) this.#clocks.clear()
      this.#lastClock = known ?? new ServerClock()
      this.#clocks.set(server, this.#lastClock)
    }
    return this.#lastClock
  }

  /** The server's time now at the latest, microseconds; undefined while nothing is known. */
  latestMicros(key: string): number | undefined {
    const micros = this.of(key).latestMicrosAt(this.now())
    return micros === Number.POSITIVE_INFINITY ? undefined : micros
  }
}
