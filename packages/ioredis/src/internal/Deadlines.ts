import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { ScriptCall } from "./ScriptCall.ts"

/**
 * The calls whose replies are waited for, in the order of making, which is that of their timeouts: one timer watches over
 * all.
 */
export class Deadlines {
  readonly timeoutMillis: number
  readonly pending = new Set<ScriptCall>()
  #timer: ReturnType<typeof setTimeout> | undefined

  private constructor(timeoutMillis: number) {
    this.timeoutMillis = timeoutMillis
  }

  static make(timeoutMillis: number): Effect.Effect<Deadlines, never, Scope.Scope> {
    return Effect.acquireRelease(
      Effect.sync(() => new Deadlines(timeoutMillis)),
      (deadlines) => Effect.sync(() => clearTimeout(deadlines.#timer))
    )
  }

  add(call: ScriptCall): void {
    this.pending.add(call)
    this.#timer ??= setTimeout(this.#expire, this.timeoutMillis).unref()
  }

  readonly #expire = (): void => {
    this.#timer = undefined
    const now = performance.now()
    for (const call of this.pending) {
      if (call.until > now) {
        // what a timeout has led to may have set it already, for later
        clearTimeout(this.#timer)
        this.#timer = setTimeout(this.#expire, call.until - now).unref()
        break
      }
      call.expire()
    }
  }
}
