import { connect, type Socket } from "node:net"

/** Whether a direction delivers its data, holds it back, or (bytes only) discards it. */
export type Mode = "flow" | "hold" | "drop"

/** Read at each step, so that a change takes effect on what is under way. */
export interface Rules {
  readonly requests: () => Mode
  readonly replies: () => Mode
  readonly delayMillis: () => number
  /** Sees what a client sends before any of it is forwarded. */
  readonly onRequest: (connection: Connection, bytes: Buffer) => void
}

type Event = Buffer | "end" | "reset"

/** setTimeout treats any longer delay as 1 ms. */
const LONGEST_TIMER = 2 ** 31 - 1

/** One direction of one connection: a queue of bytes, ends and resets, delivered in order once due. */
class Lane {
  readonly sink: Socket
  readonly mode: () => Mode
  readonly delayMillis: () => number
  readonly queue: Array<{ readonly event: Event; readonly due: number }> = []
  timer: NodeJS.Timeout | undefined
  discarded = false

  constructor(sink: Socket, mode: () => Mode, delayMillis: () => number) {
    this.sink = sink
    this.mode = mode
    this.delayMillis = delayMillis
  }

  push(event: Event): void {
    if (this.discarded) return
    this.queue.push({ event, due: performance.now() + this.delayMillis() })
    this.pump()
  }

  pump(): void {
    clearTimeout(this.timer)
    for (let head = this.queue[0]; head !== undefined; head = this.queue[0]) {
      const mode = this.mode()
      if (mode === "hold") return
      const wait = head.due - performance.now()
      if (wait > 0) {
        this.timer = setTimeout(() => this.pump(), Math.min(Math.ceil(wait), LONGEST_TIMER))
        return
      }
      this.queue.shift()
      if (head.event === "reset") reset(this.sink)
      else if (head.event === "end") this.sink.end()
      else if (mode === "flow") this.sink.write(head.event)
    }
  }

  /** Stops delivering. */
  discard(): void {
    this.discarded = true
    clearTimeout(this.timer)
    this.queue.length = 0
  }
}

/** A broken network shows as ECONNRESET, not as an orderly end. */
const reset = (socket: Socket): void => {
  if (socket.connecting) socket.destroy()
  else socket.resetAndDestroy()
}

/**
 * A client's connection and the one made for it to the target. One side may outlive the other, as long as its end is
 * held back.
 */
export class Connection {
  readonly client: Socket
  readonly target: Socket
  readonly requests: Lane
  readonly replies: Lane

  constructor(
    client: Socket,
    target: { readonly host: string; readonly port: number },
    rules: Rules,
    onClosed: (connection: Connection) => void
  ) {
    this.client = client
    this.target = connect({ ...target, allowHalfOpen: true, noDelay: true })
    this.requests = new Lane(this.target, rules.requests, rules.delayMillis)
    this.replies = new Lane(client, rules.replies, rules.delayMillis)
    client.on("data", (bytes: Buffer) => {
      rules.onRequest(this, bytes)
      this.requests.push(bytes)
    })
    this.target.on("data", (bytes: Buffer) => this.replies.push(bytes))
    let open = 2
    const passOnTheEnd = (source: Socket, lane: Lane) => {
      let ended = false
      source.on("end", () => {
        ended = true
        lane.push("end")
      })
      source.on("error", () => {})
      source.on("close", (hadError) => {
        if (hadError || !ended) lane.push("reset")
        if (--open > 0) return
        this.discard()
        onClosed(this)
      })
    }
    passOnTheEnd(client, this.requests)
    passOnTheEnd(this.target, this.replies)
  }

  /** Whether the client is still connected and has not ended its side. */
  get hasClient(): boolean {
    return this.client.readable
  }

  /** Delivers what has become deliverable. */
  pump(): void {
    this.requests.pump()
    this.replies.pump()
  }

  private discard(): void {
    this.requests.discard()
    this.replies.discard()
  }

  /** Breaks both sides at once, whatever the rules say. */
  destroy(): void {
    this.discard()
    reset(this.client)
    this.target.destroy()
  }
}
