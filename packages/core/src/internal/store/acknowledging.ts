/**
 * The one place that every grant passes through before it counts, however it was acquired: at once, after waiting in a queue, in
 * a fair turn, by a reader, as a permit, by re-entry.
 *
 * A grant that is not acknowledged makes its command fail like one with unknown outcome: the caller takes it back.
 */
import * as Effect from "effect/Effect"
import { InvalidLockOptions, type LockStoreError } from "../../LockError.ts"
import type { Acknowledgement } from "../options/acknowledge.ts"
import type { StoreCommand } from "./operations/StoreOperation.ts"
import type { Acknowledges, Store } from "./Store.ts"

/** Runs commands, and waits for acknowledgement of their grants if they, or the default, require it. */
export const acknowledging = (store: Store, byDefault: Acknowledgement | undefined): Store["run"] => {
  const { acknowledges } = store
  const run: Store["run"] = (command) => store.run(command)
  if (acknowledges === undefined) return run
  return (command) => {
    const wanted = command.acknowledge ?? byDefault
    return wanted === undefined || wanted === "none" || command.operation.grants === undefined
      ? run(command)
      : acknowledged(run(command), command, wanted, acknowledges)
  }
}

const acknowledged = <A>(
  ran: Effect.Effect<A, LockStoreError>,
  command: StoreCommand<A>,
  wanted: Acknowledgement,
  { confirm, prepare }: Acknowledges
): Effect.Effect<A, LockStoreError> => {
  const lock = command.keys[0]!
  return Effect.andThen(
    prepare(lock, wanted),
    Effect.flatMap(ran, (reply) => {
      const grant = command.operation.grants!(command, reply)
      return grant === undefined ? Effect.succeed(reply) : Effect.as(confirm(lock, grant, wanted), reply)
    })
  )
}

/** The problem with a request or a client whose store cannot acknowledge grants. */
export const checkAcknowledges = (
  { acknowledges }: Pick<Store, "acknowledges">,
  { acknowledge }: { readonly acknowledge: Acknowledgement | "none" | undefined }
): InvalidLockOptions | undefined =>
  acknowledge === undefined || acknowledge === "none" || acknowledges !== undefined
    ? undefined
    : new InvalidLockOptions({
        option: "acknowledge",
        problem:
          "this store cannot wait for replicas. Use a layer of @effect-redis-lock/ioredis; on a quorum, give the option to the " +
          "layers of its members"
      })
