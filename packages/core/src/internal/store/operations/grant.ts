/**
 * `lua/grant/`: what all kinds of grant have in common.
 */
import { numbersReply } from "./replies/replies.ts"
import { type Grant, command, operation, type StoreCommand } from "./StoreOperation.ts"

export const operations = {
  confirm: operation("grant/confirm", { reply: numbersReply })
}

/** Replies for each grant whether it is there, 1 or 0, after writing one of them again as it is. All are of one slot. */
export const confirm = (grants: ReadonlyArray<Grant>): StoreCommand<ReadonlyArray<number>> =>
  command(
    operations.confirm,
    grants.map(({ key }) => key),
    grants.map(({ mark }) => mark)
  )
