/**
 * A TCP proxy for one client that delivers what the client has sent also after the client has closed its connection, and later
 * than what it sends over the next one: no order holds between two connections.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net"
import { now } from "./events.ts"

/** How long a connection to the server stays open after its late bytes: until they have been read. */
const LINGER_MILLIS = 500

class Line {
  readonly #client: Socket
  readonly #server: Socket
  readonly #delivered: (bytes: Buffer) => void
  readonly #gone: () => void
  #isAnswered = false
  /** What is lost of it. */
  #dropped: "requests" | "replies" | undefined
  /** What the client has sent and the server has not got, while it is held back. */
  #held: Array<Buffer> | undefined
  #timer: NodeJS.Timeout | undefined
  /** Whether the client has sent anything. */
  hasSpoken = false
  /** Whether it has subscribed to anything. */
  isSubscribed = false

  constructor(
    client: Socket,
    port: number,
    delivered: (bytes: Buffer) => void,
    answered: () => void,
    gone: () => void
  ) {
    this.#client = client
    this.#delivered = delivered
    this.#gone = gone
    this.#server = connect({ host: "127.0.0.1", port, noDelay: true })
    client.setNoDelay(true)
    client.on("data", (bytes) => {
      this.hasSpoken = true
      // of a push protocol the text is all that tells
      this.isSubscribed ||= /\bs?subscribe\r\n/i.test(bytes.toString("latin1"))
      if (this.#dropped === "requests") return
      if (this.#held === undefined) this.#server.write(bytes)
      else this.#held.push(bytes)
    })
    this.#server.on("data", (bytes) => {
      if (!this.#isAnswered) answered()
      this.#isAnswered = true
      if (this.#dropped === "replies") return
      if (!client.destroyed) client.write(bytes)
    })
    client.on("error", () => {})
    this.#server.on("error", () => {})
    client.on("close", () => {
      if (this.#held === undefined) this.#server.end()
    })
    this.#server.on("close", () => {
      client.destroy()
      clearTimeout(this.#timer)
      gone()
    })
  }

  get isOpen(): boolean {
    return !this.#client.destroyed
  }

  /** From now on the server gets nothing of what the client sends. */
  hold(): void {
    this.#held ??= []
  }

  /** Breaks the client's connection; what was held back arrives after so many milliseconds. */
  breakLate(millis: number): void {
    this.#client.destroy()
    this.#timer = setTimeout(() => this.deliver(), millis)
  }

  /** Delivers what was held back, now. */
  deliver(): void {
    clearTimeout(this.#timer)
    const held = this.#held
    if (held === undefined) return
    this.#held = undefined
    const bytes = Buffer.concat(held)
    this.#server.write(bytes)
    if (bytes.length > 0) this.#delivered(bytes)
    if (this.#client.destroyed) this.#timer = setTimeout(() => this.#server.end(), LINGER_MILLIS)
  }

  pause(): void {
    this.#client.pause()
    this.pauseReplies()
  }

  /** What the server sends stays on the way, in its order. */
  pauseReplies(): void {
    this.#server.pause()
  }

  resume(): void {
    this.#client.resume()
    this.#server.resume()
  }

  /** From now on what goes one way is lost: until the connection breaks, as no other bytes may come in its place. */
  drop(what: "requests" | "replies"): void {
    this.#dropped = what
  }

  cut(): void {
    // the bytes of a connection that is late already come in their own time
    if (this.#held !== undefined) return
    this.#client.resetAndDestroy()
    this.destroy()
  }

  destroy(): void {
    clearTimeout(this.#timer)
    this.#client.destroy()
    this.#server.destroy()
    this.#gone()
  }
}

export class LateProxy {
  readonly url: string
  readonly #lines: Set<Line>
  readonly #silence: { now: boolean }
  readonly #answers: ReadonlyArray<number>

  private constructor(port: number, lines: Set<Line>, silence: { now: boolean }, answers: ReadonlyArray<number>) {
    this.#answers = answers
    this.url = `redis://127.0.0.1:${port}`
    this.#lines = lines
    this.#silence = silence
  }

  /** Stands before the server on that port until the scope closes, and tells what it has delivered late. */
  static readonly make = (
    port: number,
    delivered: (bytes: Buffer) => void
  ): Effect.Effect<LateProxy, never, Scope.Scope> =>
    Effect.suspend(() => {
      const lines = new Set<Line>()
      const silence = { now: false }
      const answers: Array<number> = []
      const server = createServer((client) => {
        const answered = () => void answers.push(now())
        const line = new Line(client, port, delivered, answered, () => lines.delete(line))
        lines.add(line)
        if (silence.now) line.pause()
      })
      return Effect.map(
        Effect.acquireRelease(
          Effect.callback<Server>((resume) => {
            server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
          }),
          () =>
            Effect.sync(() => {
              for (const line of lines) line.destroy()
              server.close()
            })
        ),
        () => new LateProxy((server.address() as AddressInfo).port, lines, silence, answers)
      )
    })

  /** The connections over which the client has sent something, those that are broken and late left out. */
  get inUse(): number {
    let count = 0
    for (const line of this.#lines) if (line.hasSpoken && line.isOpen) count++
    return count
  }

  /** When the server first answered on each of the connections that were made after that time. */
  answeredAfter(time: number): ReadonlyArray<number> {
    return this.#answers.filter((at) => at > time)
  }

  /** Holds back what comes over the present connections; the inner function breaks them and says how late it arrives. */
  hold(): (lateMillis: number) => void {
    const lines = [...this.#lines]
    for (const line of lines) line.hold()
    return (lateMillis) => {
      for (const line of lines) line.breakLate(lateMillis)
    }
  }

  /** Delivers now whatever was to arrive later. */
  deliverAll(): void {
    for (const line of this.#lines) line.deliver()
  }

  /** Messages of the present subscriptions stay on the way until the returned function is called. */
  holdMessages(): () => void {
    const lines = [...this.#lines].filter(({ isSubscribed }) => isSubscribed)
    for (const line of lines) line.pauseReplies()
    return () => {
      for (const line of lines) line.resume()
    }
  }

  /** What goes one way over the present connections is lost; the returned function breaks them. */
  drop(what: "requests" | "replies"): () => void {
    const lines = [...this.#lines]
    for (const line of lines) line.drop(what)
    return () => {
      for (const line of lines) line.cut()
    }
  }

  /** Nothing passes until the returned function is called. */
  silence(): () => void {
    this.#silence.now = true
    for (const line of this.#lines) line.pause()
    return () => {
      this.#silence.now = false
      for (const line of this.#lines) line.resume()
    }
  }

  /** Breaks all connections but those that are late already. */
  cut(): void {
    for (const line of this.#lines) line.cut()
  }
}
