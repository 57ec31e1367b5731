/**
 * A fiber beside the test.
 */
import { Effect } from "effect"

/** Forks, and runs what does not have to wait at once; ends with the test. */
export const background = <A, E, R>(self: Effect.Effect<A, E, R>) => Effect.forkChild(self, { startImmediately: true })
