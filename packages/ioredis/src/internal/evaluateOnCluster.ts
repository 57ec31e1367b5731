import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Scope from "effect/Scope"
import { RedisDriver } from "effect-redis-lock"
import type { Redis } from "ioredis"
import type { ClusterNodes } from "./ClusterNodes.ts"
import { failureOf } from "./failure.ts"
import { hashSlot } from "./hashSlot.ts"
import { PendingCommands } from "./PendingCommands.ts"
import type { CommandWriter } from "./CommandWriter.ts"
import { type OnExit, ScriptCommand } from "./ScriptCommand.ts"

/** How often a command follows a redirection before it fails with it. */
const MAX_REDIRECTIONS = 16

/** After how long a command is tried again that a slot on the move has turned away. */
const RETRY_MILLIS = 50

/**
 * A script on its way to the node that serves its keys. It is sent again only where a node has turned it away unrun: to be
 * run elsewhere (MOVED, ASK), in a moment (TRYAGAIN), or with its text (NOSCRIPT).
 */
class ClusterScriptCommand extends ScriptCommand {
  readonly #nodes: ClusterNodes
  readonly #slot: number
  /** The node that it was sent to, or whose connection it waits for. */
  node: CommandWriter | undefined
  #sent = false
  #asking = false
  #redirections = 0
  /** Why it was turned away, while it is nowhere. */
  #refusal: unknown

  constructor(
    pending: PendingCommands,
    nodes: ClusterNodes,
    script: RedisDriver.RedisScript,
    keys: ReadonlyArray<string>,
    args: ReadonlyArray<string | number>,
    onExit: OnExit
  ) {
    super(pending, script, keys, args, onExit)
    this.#nodes = nodes
    this.#slot = hashSlot(keys[0]!)
  }

  /** To the node that serves the slot. */
  route(): void {
    this.#asking = false
    this.#goTo(this.#nodes.ownerOf(this.#slot))
  }

  /** A connection is opened when it is first wanted, and waited for; one that has broken is not. */
  #goTo(node: CommandWriter | undefined): void {
    this.node = node
    this.#sent = false
    switch (node?.client.status) {
      case "ready":
        this.proceed()
        break
      case "wait":
        node.client.connect().catch(() => {}) // whoever waits for it is told by its events
        break
      case "connecting":
      case "connect":
        break
      default:
        this.refuse(node?.connection?.notConnected ?? this.#nodes.noneFor(this.#slot))
        this.#nodes.refresh()
    }
  }

  /** The connection stands. */
  proceed(): void {
    if (this.#sent) return
    this.#sent = true
    this.#refusal = undefined
    this.send(this.node!)
  }

  override send(writer: CommandWriter): void {
    if (this.#asking) writer.client.asking().catch(() => {})
    super.send(writer)
  }

  /** The connection broke, or could not be made. */
  disconnected(): void {
    if (this.#sent) this.fail("ConnectionLost", "the connection broke before the reply came")
    else this.refuse(this.node!.connection!.notConnected)
  }

  override expire(): void {
    this.node?.onCommandTimeout()
    if (this.#refusal === undefined) super.expire()
    else this.settle(Exit.fail(refusalOf(this.#refusal)))
    this.#nodes.refresh()
  }

  override onErrorReply(error: unknown): void {
    const [code, slot, address] = error instanceof Error ? error.message.split(" ") : []
    if (this.#redirections < MAX_REDIRECTIONS) {
      if ((code === "MOVED" || code === "ASK") && address !== undefined) {
        this.#redirections++
        return this.#redirect(code, Number(slot), address, error)
      }
      if (code === "TRYAGAIN") return this.#tryAgain(error)
    }
    const reason = RedisDriver.reasonOf(error)
    if (reason === "ClusterDown" || reason === "ConnectionLost" || reason === "ReadOnly") this.#nodes.refresh()
    if (code === "MOVED" || code === "ASK") this.settle(Exit.fail(refusalOf(error)))
    else super.onErrorReply(error)
  }

  #redirect(code: "MOVED" | "ASK", slot: number, address: string, error: unknown): void {
    // without a host it is the one that answers
    const target = address.startsWith(":") ? `${this.node!.client.options.host}${address}` : address
    if (code === "MOVED") this.#nodes.moved(slot, target)
    const node = this.#nodes.at(target)
    // a node that nobody has heard of, or that goes by another address here, is found by asking for all
    if (node === undefined) {
      this.#nodes.refresh()
      return this.#tryAgain(error)
    }
    this.#asking = code === "ASK"
    this.#goTo(node)
  }

  #tryAgain(error: unknown): void {
    this.#refusal = error
    this.node = undefined
    setTimeout(() => {
      if (this.isWaiting) this.route()
    }, RETRY_MILLIS).unref()
  }
}

/** A redirection that has led nowhere so far: the slot is on the move. */
const refusalOf = (error: unknown): RedisDriver.RedisDriverError => {
  const { cause, reason } = failureOf(error)
  return new RedisDriver.RedisDriverError({ reason: reason === "ClusterMismatch" ? "ClusterDown" : reason, cause })
}

/**
 * Runs scripts by SHA on the masters that serve their keys.
 */
export const makeEvalOnCluster = (
  nodes: ClusterNodes,
  timeoutMillis: number
): Effect.Effect<RedisDriver.EvalUnsafe, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { commandTimeout = timeoutMillis } = nodes.cluster.options.redisOptions ?? {}
    const pending = yield* PendingCommands.make(Math.min(timeoutMillis, commandTimeout))
    const each = (f: (command: ClusterScriptCommand) => void) => (node: Redis) => {
      for (const command of pending.all) {
        if ((command as ClusterScriptCommand).node?.client === node) f(command as ClusterScriptCommand)
      }
    }
    yield* Effect.acquireRelease(
      Effect.sync(() => {
        const watcher = {
          onReady: each((command) => command.proceed()),
          onClose: each((command) => command.disconnected())
        }
        nodes.watchers.add(watcher)
        return watcher
      }),
      (watcher) => Effect.sync(() => nodes.watchers.delete(watcher))
    )
    return (script, keys, args, onExit) => {
      const call = new ClusterScriptCommand(pending, nodes, script, keys, args, onExit)
      call.route()
      return call
    }
  })
