import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"

/** Emits an element whenever the listener is called; ends listening with the stream. */
export const reconnectsOf = (listen: (onReady: () => void) => () => void): Stream.Stream<void> =>
  Stream.callback<void>((elements) =>
    Effect.acquireRelease(
      Effect.sync(() => listen(() => void Queue.offerUnsafe(elements, undefined))),
      (stop) => Effect.sync(stop)
    )
  )
