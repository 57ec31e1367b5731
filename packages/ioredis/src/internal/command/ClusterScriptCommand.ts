import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Scope from "effect/Scope"
import { RedisDriver } from "effect-redis-lock"
import { Command, type Redis } from "ioredis"
import type { ClusterNodes } from "../connection/ClusterNodes.ts"
import type { CommandWriter } from "./CommandWriter.ts"
import { scoped } from "../connection/listening.ts"
import { refusalOf } from "../failure.ts"
import { hashSlot } from "./hashSlot.ts"
import { type OnExit, PendingCommands, ScriptCommand } from "./ScriptCommand.ts"

/** A command follows at most this many redirections in a row without a pause; with the next one it fails. */
const MAX_REDIRECTIONS = 16

/** The pause before resending a command that was rejected because its slot is being moved. */
const RETRY_MILLIS = 50

/**
 * A script in flight to the node that serves its keys. It is resent only if a node has rejected it without running it: to another
 * node (MOVED, ASK), after a pause (TRYAGAIN), or with its text (NOSCRIPT).
 */
export class ClusterScriptCommand extends ScriptCommand {
  readonly #nodes: ClusterNodes
  readonly #slot: number
  /** The node that it was sent to, or whose connection it waits for. */
  node: CommandWriter | undefined
  #sent = false
  #asking = false
  #redirections = 0
  /** Why it was rejected, until it is resent. */
  #refusal: unknown

  constructor(
    { nodes, pending }: { readonly nodes: ClusterNodes; readonly pending: PendingCommands },
    script: RedisDriver.RedisScript,
    keys: ReadonlyArray<string>,
    args: ReadonlyArray<string | number>,
    onExit: OnExit
  ) {
    super(pending, script, keys, args, onExit)
    this.#nodes = nodes
    this.#slot = hashSlot(keys[0]!)
  }

  /** Goes to the node that serves the slot. */
  route(): void {
    this.#asking = false
    this.#goTo(this.#nodes.ownerOf(this.#slot))
  }

  /** Opens a connection that was never opened, and waits for it; does not wait for a broken one. */
  #goTo(node: CommandWriter | undefined): void {
    this.node = node
    this.#sent = false
    switch (node?.client.status) {
      case "ready":
        this.proceed()
        break
      case "wait":
        node.client.connect().catch(() => {}) // its events tell the waiting commands
        break
      case "connecting":
      case "connect":
        break
      default:
        this.refuse(this.#nodes.ended ?? node?.connection.notConnected ?? this.#nodes.noneFor(`slot ${this.#slot}`))
        this.#nodes.refresh()
    }
  }

  /** The connection is ready. */
  proceed(): void {
    if (this.#sent) return
    this.#sent = true
    this.#refusal = undefined
    this.send(this.node!)
  }

  protected override prepare(writer: CommandWriter): void {
    // not asking(): with enableAutoPipelining it would be sent after the script; and the server would forget it if another command came between
    if (this.#asking) (writer.client.sendCommand(new Command("asking")) as Promise<unknown>).catch(() => {})
    else super.prepare(writer)
  }

  /** The connection broke, or could not be opened. */
  disconnected(): void {
    if (this.#sent) this.fail("ConnectionLost", "the connection broke before the reply came")
    else this.refuse(this.node!.connection.notConnected)
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
    // without a host, it is the node that replied; one of IPv6 may also begin with a colon
    const target =
      address.lastIndexOf(":") === 0 ? `${this.node!.client.options.host}${address}` : this.#nodes.reachedAs(address)
    if (code === "MOVED") this.#nodes.moved(slot, target)
    const node = this.#nodes.at(target)
    // a refresh finds a node that is new
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
      // after a pause this is no loop
      this.#redirections = 0
      if (this.isWaiting) this.route()
    }, RETRY_MILLIS).unref()
  }
}

/** Runs scripts by SHA on the masters that serve their keys. */
export const makeEvalOnCluster = (nodes: ClusterNodes): Effect.Effect<RedisDriver.EvalUnsafe, never, Scope.Scope> =>
  Effect.gen(function* () {
    const ownMillis = nodes.cluster.options.redisOptions?.commandTimeout
    const pending = yield* scoped(() => new PendingCommands(nodes.options.commandTimeoutMillis, ownMillis))
    const each = (f: (command: ClusterScriptCommand) => void) => (node: Redis) => {
      for (const command of pending.all) {
        if ((command as ClusterScriptCommand).node?.client === node) f(command as ClusterScriptCommand)
      }
    }
    yield* scoped(() =>
      nodes.watch({
        onReady: each((command) => command.proceed()),
        onClose: each((command) => command.disconnected())
      })
    )
    const target = { nodes, pending }
    return (script, keys, args, onExit) => {
      const command = new ClusterScriptCommand(target, script, keys, args, onExit)
      command.route()
      return command
    }
  })
