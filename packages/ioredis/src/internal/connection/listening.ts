import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Cluster, Redis } from "ioredis"

export interface Closable {
  close(): void
}

/** Makes something that is closed with the scope. */
export const scoped = <A extends Closable>(make: () => A): Effect.Effect<A, never, Scope.Scope> =>
  Effect.acquireRelease(Effect.sync(make), (made) => Effect.sync(() => made.close()))

/** Listens to events of a client. */
export const listen = (
  client: Redis | Cluster,
  listeners: Readonly<Record<string, (...args: Array<any>) => void>>
): Closable => {
  const all = Object.entries(listeners)
  for (const [event, listener] of all) client.on(event, listener)
  return {
    close: () => {
      for (const [event, listener] of all) client.off(event, listener)
    }
  }
}

/** Emits an element whenever the listener is called, which is closed with the stream. */
export const eachTime = (listening: (listener: () => void) => Closable): Stream.Stream<void> =>
  Stream.callback<void>((elements) => scoped(() => listening(() => void Queue.offerUnsafe(elements, undefined))))
