/**
 * How the places of clients that wait for permits, with ids or without, go into commands.
 */
import { permitPlaces, semaphoreChannel } from "../../keys.ts"
import type { Store } from "../../Store.ts"

/** What a store needs to tell others that permits are free. */
export type TellingStore = Pick<Store, "publish" | "handsOver">

/** What a request says of the waiting fibers of its client. */
export interface Asking {
  readonly clientId: string
  /** How many permits the client wants to be told of if it is denied these; zero if it will not wait. */
  readonly ifDenied: number
  /** How many its other fibers want if it is granted these; zero if none of them waits. */
  readonly ifGranted: number
  /** The waiter that has waited longest, another one, or a fiber that has not waited yet. */
  readonly who: "oldest" | "younger" | "new"
}

/** The last keys of a command after which permits may be free. */
export const tellingKeys = (key: string, { handsOver }: TellingStore): ReadonlyArray<string> =>
  handsOver ? [semaphoreChannel(key), ...permitPlaces(key)] : [semaphoreChannel(key)]

/** The arguments that follow where there are keys of places. */
export const askingArgs = (
  { handsOver }: TellingStore,
  { clientId, ifDenied, ifGranted, who }: Asking
): ReadonlyArray<string | number> => (handsOver ? [clientId, ifDenied, ifGranted, who] : [])
