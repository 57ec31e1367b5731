/**
 * `lua/client/`: what a client tells others about itself.
 */
import { majority } from "./majority.ts"
import { numberReply } from "./replies/replies.ts"
import { operation, type StoreCommand } from "./StoreOperation.ts"

export const operations = {
  setLabel: operation("client/set_label", { reply: numberReply, quorum: majority }),
  label: operation("client/label", {
    reply: (raw) => (raw === null ? "" : String(raw)),
    // a majority has been told, so one of any majority knows it
    quorum: { combine: (labels) => labels.find((label) => label !== "") ?? "" }
  }),
  tell: operation("client/tell", { reply: numberReply, quorum: majority })
}

export const setLabel = (key: string, label: string, lifeMillis: number): StoreCommand<number> => ({
  operation: operations.setLabel,
  keys: [key],
  args: [label, lifeMillis]
})

/** Its answer is empty if the client has told none. */
export const label = (key: string): StoreCommand<string> => ({
  operation: operations.label,
  keys: [key],
  args: []
})

/** Tells a client that a lock was taken from it by force. */
export const tell = (key: string, publish: string): StoreCommand<number> => ({
  operation: operations.tell,
  keys: [key],
  args: [publish]
})
