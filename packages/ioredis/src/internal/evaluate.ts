import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { RedisDriver } from "effect-redis-lock"
import { Command, type Redis } from "ioredis"

type Eval = RedisDriver.RedisDriver["Service"]["eval"]
type Outcome = Effect.Effect<RedisDriver.Reply, RedisDriver.RedisDriverError>

const fail = (reason: RedisDriver.RedisDriverError["reason"], message: string) =>
  Effect.fail(new RedisDriver.RedisDriverError({ reason, cause: new Error(message) }))

/** A command whose reply somebody waits for. */
class Pending {
  readonly until: number
  readonly #all: Set<Pending>
  readonly #resume: (outcome: Outcome) => void
  #command: Command | undefined

  constructor(all: Set<Pending>, until: number, resume: (outcome: Outcome) => void) {
    this.until = until
    this.#all = all
    this.#resume = resume
    all.add(this)
  }

  get isWaiting(): boolean {
    return this.#all.has(this)
  }

  send(client: Redis, name: string, args: Array<string | number>): Promise<unknown> {
    this.#command = new Command(name, args, { replyEncoding: "utf8" })
    return client.sendCommand(this.#command) as Promise<unknown>
  }

  settle(outcome: Outcome): void {
    if (this.#all.delete(this)) this.#resume(outcome)
  }

  fail(reason: RedisDriver.RedisDriverError["reason"], message: string): void {
    this.giveUp()
    this.#resume(fail(reason, message))
  }

  /**
   * An application's own client may keep the command and send it when it is connected again, long after everybody has given
   * up. It cannot be taken back there, but it can be made harmless; what has been sent already stays as it is.
   */
  giveUp(): void {
    this.#all.delete(this)
    this.#command!.name = "ping"
    this.#command!.args = []
  }
}

/**
 * Runs scripts by SHA on one client.
 */
export const makeEval = (client: Redis, timeoutMillis: number): Effect.Effect<Eval, never, Scope.Scope> =>
  Effect.gen(function* () {
    // In the order of sending, which is that of their timeouts: one timer watches over all.
    const pending = new Set<Pending>()
    let timer: ReturnType<typeof setTimeout> | undefined
    const expire = () => {
      timer = undefined
      const now = performance.now()
      for (const command of pending) {
        if (command.until > now) {
          // what a timeout has led to may have set it already, for later
          clearTimeout(timer)
          timer = setTimeout(expire, command.until - now).unref()
          break
        }
        command.fail("TimedOut", `no reply within ${timeoutMillis} ms`)
      }
    }

    const onClose = () => {
      for (const command of pending) command.fail("ConnectionLost", "the connection broke before the reply came")
    }
    yield* Effect.acquireRelease(
      Effect.sync(() => client.on("close", onClose)),
      () =>
        Effect.sync(() => {
          client.off("close", onClose)
          clearTimeout(timer)
        })
    )

    return (script, keys, args) =>
      Effect.callback<RedisDriver.Reply, RedisDriver.RedisDriverError>((resume) => {
        if (client.status !== "ready") {
          resume(fail("NotConnected", `the connection is in state "${client.status}"`))
          return
        }
        const command = new Pending(pending, performance.now() + timeoutMillis, resume)
        timer ??= setTimeout(expire, timeoutMillis).unref()
        const onReply = (reply: unknown) => command.settle(Effect.succeed(reply as RedisDriver.Reply))
        const onError = (error: unknown) => command.settle(Effect.fail(RedisDriver.errorOf(error)))
        command.send(client, "evalsha", [script.sha1, keys.length, ...keys, ...args]).then(onReply, (error) => {
          // what was given up must not be sent after all
          if (command.isWaiting && RedisDriver.isUnknownScript(error)) {
            command.send(client, "eval", [script.lua, keys.length, ...keys, ...args]).then(onReply, onError)
          } else {
            onError(error)
          }
        })
        return Effect.sync(() => command.giveUp())
      })
  })
