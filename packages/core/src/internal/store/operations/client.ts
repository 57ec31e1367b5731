/**
 * `lua/client/`: what a client tells others about itself, and has the server tell it.
 */
import { majority, numberReply, operation, StoreCommand } from "./StoreOperation.ts"

export const operations = {
  setLabel: operation("client/set_label", { reply: numberReply, quorum: majority }),
  label: operation("client/label", {
    reply: (raw) => (raw === null ? "" : String(raw)),
    // a majority has been told, so one of any majority knows it
    quorum: { combine: (labels) => labels.find((label) => label !== "") ?? "" }
  }),
  removeLabel: operation("client/remove_label", { givesBack: "client", reply: numberReply, quorum: majority }),
  track: operation("client/track", { reply: numberReply, quorum: majority })
}

export const setLabel = (key: string, label: string, lifeMillis: number): StoreCommand<number> =>
  new StoreCommand(operations.setLabel, [key], [label, lifeMillis])

/** Its answer is empty if the client has told none. */
export const label = (key: string): StoreCommand<string> => new StoreCommand(operations.label, [key], [])

/** Its answer is 0 if the client had told none. */
export const removeLabel = (key: string): StoreCommand<number> => new StoreCommand(operations.removeLabel, [key], [])

/** Has the server tell of the next change of each of these keys of one slot. */
export const track = (keys: ReadonlyArray<string>): StoreCommand<number> => new StoreCommand(operations.track, keys, [])
