import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"

/** An element for each call of the listener, until it is taken away again. */
export const reconnectsOf = (listen: (onReady: () => void) => () => void): Stream.Stream<void> =>
  Stream.callback<void>((elements) =>
    Effect.acquireRelease(
      Effect.sync(() => listen(() => void Queue.offerUnsafe(elements, undefined))),
      (stop) => Effect.sync(stop)
    )
  )
