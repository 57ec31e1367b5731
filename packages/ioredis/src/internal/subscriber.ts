import * as Arr from "effect/Array"
import type { RedisDriver } from "effect-redis-lock"
import { Command } from "ioredis"
import { type Failure, failureOf } from "./failure.ts"
import type { CommandWriter } from "./command/CommandWriter.ts"
import { hashSlot } from "./command/hashSlot.ts"

export interface Listener {
  readonly onSignal: (signal: RedisDriver.Signal) => void
  readonly onFailure: (error: Failure) => void
}

/** The servers at which channels are subscribed. */
export interface SubscriptionTarget {
  /** Plain or sharded pub/sub, of which a command may name the channels of only one slot. */
  readonly sharded: boolean
  /** The name of the server that serves a channel now; undefined while it is not known. */
  readonly serverOf: (channel: string) => string | undefined
  /** A connection to that server, for subscriptions alone. */
  readonly open: (server: string) => CommandWriter
  /** Looks up again which server serves which channel. */
  readonly refresh: () => void
}

/** One connection, and the channels that are subscribed over it. */
interface Link {
  readonly server: string
  readonly writer: CommandWriter
  readonly channels: Set<Channel>
  /** The server's number of the current connection, if there is one, which a connection that is subscribed to something could not ask for. */
  clientId: Promise<number> | undefined
}

interface Channel {
  readonly name: string
  readonly listeners: Set<Listener>
  link: Link | undefined
  /** The server of the last request for it. */
  server: string | undefined
  /** Whether it was requested over the current connection, and whether Redis has confirmed it. */
  state: "none" | "requested" | "confirmed"
}

export const subscribed: RedisDriver.Signal = { _tag: "Subscribed" }

/** The most that one command names. */
const MOST_CHANNELS = 1000

const FIRST_PAUSE_MILLIS = 100
const LONGEST_PAUSE_MILLIS = 1000

/** Keeps the subscriptions at the servers in step with the channels that are wanted. */
export class Subscriber {
  readonly #target: SubscriptionTarget
  readonly #channels = new Map<string, Channel>()
  readonly #links = new Map<string, Link>()
  /** The changes since the last flush. */
  readonly #changed = new Set<Channel>()
  #flushing: ReturnType<typeof setImmediate> | undefined
  /** Channels that could not be subscribed, retried after a pause that grows until one succeeds. */
  readonly #failed = new Set<Channel>()
  #pauseMillis = FIRST_PAUSE_MILLIS
  #retry: ReturnType<typeof setTimeout> | undefined
  /** Whoever subscribes now hears nothing: a quorum may go on without a member whose layer has been closed. */
  #isClosed = false

  constructor(target: SubscriptionTarget) {
    this.#target = target
  }

  /** The signals of a channel. */
  readonly subscribe: RedisDriver.SubscribeUnsafe = (name, onSignal, onFailure) => {
    if (this.#isClosed) return { cancel: () => {} }
    let channel = this.#channels.get(name)
    if (channel === undefined) {
      channel = { name, listeners: new Set(), link: undefined, server: undefined, state: "none" }
      this.#channels.set(name, channel)
      this.#change(channel)
    }
    const { listeners } = channel
    const listener: Listener = { onSignal, onFailure }
    listeners.add(listener)
    if (channel.state === "confirmed") onSignal(subscribed)
    return {
      cancel: () => {
        if (listeners.delete(listener) && listeners.size === 0) this.#change(channel)
      }
    }
  }

  /** The server's number of the connection over which a channel is subscribed; undefined while there is none. */
  clientId(channel: string): Promise<number> | undefined {
    return this.#channels.get(channel)?.link?.clientId
  }

  /** The connections lead to the wrong server: opens others at once, and resubscribes over them. */
  replaceConnections(why: Error): void {
    for (const link of this.#links.values()) {
      link.clientId = undefined
      link.writer.connection.replace(why)
    }
  }

  /**
   * Slots may have moved between servers: resubscribes channels at their new servers, and closes idle connections to others than
   * these, which serve slots now.
   */
  relocate(servers: ReadonlySet<string>): void {
    for (const channel of this.#channels.values()) {
      const server = this.#target.serverOf(channel.name)
      if (server === undefined || server === channel.server) continue
      if (channel.state !== "none") this.#unsubscribe(channel.link!, [channel.name])
      this.#detach(channel)
      this.#change(channel)
    }
    for (const link of this.#links.values()) {
      if (link.channels.size > 0 || servers.has(link.server)) continue
      this.#links.delete(link.server)
      closeLink(link)
    }
  }

  /** Requests within one turn of the event loop go out as one command. */
  #change(channel: Channel): void {
    this.#changed.add(channel)
    this.#flushing ??= setImmediate(() => {
      this.#flushing = undefined
      this.#flush()
    })
  }

  #flush(): void {
    const batches = new Map<string, { link: Link; wanted: Array<Channel>; unwanted: Array<string> }>()
    const batchOf = (link: Link, name: string) => {
      const key = `${link.server} ${this.#target.sharded ? hashSlot(name) : ""}`
      const batch = batches.get(key) ?? { link, wanted: [], unwanted: [] }
      batches.set(key, batch)
      return batch
    }
    for (const channel of this.#changed) {
      if (this.#channels.get(channel.name) !== channel) continue
      if (channel.listeners.size === 0) {
        this.#channels.delete(channel.name)
        // also of one that is to be requested again: the server may have it still
        const link = this.#links.get(channel.server ?? "")
        if (link !== undefined) batchOf(link, channel.name).unwanted.push(channel.name)
        this.#detach(channel)
      } else if (channel.state === "none") {
        const link = this.#attach(channel)
        // a connection that is not ready will be
        if (link?.writer.client.status === "ready") batchOf(link, channel.name).wanted.push(channel)
      }
    }
    this.#changed.clear()
    for (const { link, unwanted, wanted } of batches.values()) {
      for (const names of Arr.chunksOf(unwanted, MOST_CHANNELS)) this.#unsubscribe(link, names)
      for (const channels of Arr.chunksOf(wanted, MOST_CHANNELS)) this.#request(link, channels)
    }
  }

  #request(link: Link, channels: ReadonlyArray<Channel>): void {
    for (const channel of channels) channel.state = "requested"
    const names = channels.map(({ name }) => name)
    const isMine = (channel: Channel) => channel.link === link && channel.state !== "none"
    const { writer } = link
    const redis = writer.client
    writer.expectAnswer()
    const reply = this.#target.sharded ? redis.ssubscribe(...names) : redis.subscribe(...names)
    reply.then(
      () => {
        writer.answered()
        this.#pauseMillis = FIRST_PAUSE_MILLIS
        for (const channel of channels.filter(isMine)) {
          channel.state = "confirmed"
          for (const { onSignal } of [...channel.listeners]) onSignal(subscribed)
        }
      },
      (cause) => {
        // a broken connection was handled when it closed
        if (redis.status !== "ready") return
        writer.answered()
        const error = failureOf(cause)
        const mine = channels.filter(isMine)
        // including MOVED: the slot has moved to another server
        if (error.reason === "ClusterDown" || error.reason === "ClusterMismatch") {
          for (const channel of mine) this.#tryLater(channel)
        } else if (channels.length > 1) {
          // one refused channel must not make the others fail
          for (const channel of mine) this.#request(link, [channel])
        } else {
          for (const channel of mine) {
            this.#channels.delete(channel.name)
            this.#detach(channel)
            for (const { onFailure } of [...channel.listeners]) onFailure(error)
          }
        }
      }
    )
  }

  #unsubscribe({ writer }: Link, names: ReadonlyArray<string>): void {
    const redis = writer.client
    if (redis.status !== "ready") return
    const reply = this.#target.sharded ? redis.sunsubscribe(...names) : redis.unsubscribe(...names)
    // a broken connection is no longer subscribed to anything
    reply.catch(() => {})
  }

  #attach(channel: Channel): Link | undefined {
    if (channel.link !== undefined) return channel.link
    const server = this.#target.serverOf(channel.name)
    if (server === undefined) {
      this.#tryLater(channel)
      return undefined
    }
    let link = this.#links.get(server)
    if (link === undefined) this.#links.set(server, (link = this.#open(server)))
    link.channels.add(channel)
    channel.link = link
    channel.server = server
    return link
  }

  #detach(channel: Channel): void {
    channel.link?.channels.delete(channel)
    channel.link = undefined
    channel.state = "none"
  }

  #tryLater(channel: Channel): void {
    this.#detach(channel)
    this.#failed.add(channel)
    this.#target.refresh()
    if (this.#retry !== undefined) return
    this.#retry = setTimeout(() => {
      this.#retry = undefined
      for (const failed of this.#failed) this.#change(failed)
      this.#failed.clear()
    }, this.#pauseMillis).unref()
    this.#pauseMillis = Math.min(2 * this.#pauseMillis, LONGEST_PAUSE_MILLIS)
  }

  #open(server: string): Link {
    const writer = this.#target.open(server)
    const redis = writer.client
    const link: Link = { server, writer, channels: new Set(), clientId: undefined }
    const onMessage = (name: string, message: string) => {
      writer.answered()
      const listeners = this.#channels.get(name)?.listeners
      if (listeners === undefined) return
      const signal: RedisDriver.Signal = { _tag: "Message", message }
      for (const { onSignal } of [...listeners]) onSignal(signal)
    }
    const forget = () => {
      for (const channel of link.channels) channel.state = "none"
    }
    redis.on(this.#target.sharded ? "smessage" : "message", onMessage)
    redis.on("close", () => {
      link.clientId = undefined
      forget()
    })
    redis.on("ready", () => {
      // not by a method: ioredis 5.3 would collect it with others (enableAutoPipelining), and send it behind SUBSCRIBE
      link.clientId = redis.sendCommand(new Command("client", ["ID"])) as Promise<number>
      link.clientId.catch(() => {})
      for (const channel of link.channels) this.#change(channel)
    })
    // The server has dropped a channel whose slot has moved, without saying which one.
    redis.on("moved", () => {
      // ioredis 5 says nothing else of a subscription that is refused for it
      writer.answered()
      forget()
      for (const channel of link.channels) this.#tryLater(channel)
    })
    // ioredis will not connect again
    redis.on("end", () => {
      writer.close()
      if (this.#links.get(server) !== link) return
      this.#links.delete(server)
      for (const channel of link.channels) this.#tryLater(channel)
    })
    return link
  }

  close(): void {
    this.#isClosed = true
    clearImmediate(this.#flushing)
    clearTimeout(this.#retry)
    const links = [...this.#links.values()]
    this.#links.clear()
    links.forEach(closeLink)
  }
}

const closeLink = ({ writer }: Link): void => {
  writer.close()
  writer.connection.close()
  writer.client.disconnect()
}
