/**
 * `lua/client/`: what a client tells others about itself.
 */
import { numberReply } from "./replies/replies.ts"
import { operation, type StoreCommand } from "./StoreOperation.ts"

// each member of a quorum knows its own clients
export const operations = {
  setLabel: operation("client/set_label", { reply: numberReply }),
  label: operation<string | undefined>("client/label", { reply: (raw) => (raw === null ? undefined : String(raw)) })
}

export const setLabel = (key: string, label: string, lifeMillis: number): StoreCommand<number> => ({
  operation: operations.setLabel,
  keys: [key],
  args: [label, lifeMillis]
})

export const label = (key: string): StoreCommand<string | undefined> => ({
  operation: operations.label,
  keys: [key],
  args: []
})
