import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { ScriptCall } from "./ScriptCall.ts"

/**
 * The calls whose replies are waited for, in the order of making, which is that of their timeouts: one timer watches over
 * all. They form a list of which each knows its neighbours, as nothing else is as cheap to enter and to leave.
 */
export class PendingCommands {
  readonly timeoutMillis: number
  #first: ScriptCall | undefined
  #last: ScriptCall | undefined
  #timer: ReturnType<typeof setTimeout> | undefined
  #immediate: ReturnType<typeof setImmediate> | undefined

  private constructor(timeoutMillis: number) {
    this.timeoutMillis = timeoutMillis
  }

  static make(timeoutMillis: number): Effect.Effect<PendingCommands, never, Scope.Scope> {
    return Effect.acquireRelease(
      Effect.sync(() => new PendingCommands(timeoutMillis)),
      (pending) =>
        Effect.sync(() => {
          clearTimeout(pending.#timer)
          clearImmediate(pending.#immediate)
        })
    )
  }

  /** All that are waited for at this moment. */
  get all(): ReadonlyArray<ScriptCall> {
    const calls: Array<ScriptCall> = []
    for (let call = this.#first; call !== undefined; call = call.next) calls.push(call)
    return calls
  }

  add(call: ScriptCall): void {
    call.previous = this.#last
    if (this.#last === undefined) this.#first = call
    else this.#last.next = call
    this.#last = call
    this.#timer ??= setTimeout(this.#onTimer, this.timeoutMillis).unref()
  }

  remove(call: ScriptCall): void {
    if (call.previous === undefined) this.#first = call.next
    else call.previous.next = call.next
    if (call.next === undefined) this.#last = call.previous
    else call.next.previous = call.previous
    call.previous = call.next = undefined
  }

  /** Where the event loop was blocked, replies may lie in the socket: they are read first. */
  readonly #onTimer = (): void => {
    this.#immediate = setImmediate(this.#expire)
  }

  readonly #expire = (): void => {
    this.#timer = this.#immediate = undefined
    const now = performance.now()
    for (let first = this.#first; first !== undefined; first = this.#first) {
      if (first.until > now) {
        // what a timeout has led to may have set it already, for later
        clearTimeout(this.#timer)
        this.#timer = setTimeout(this.#onTimer, first.until - now).unref()
        break
      }
      first.expire()
    }
  }
}
