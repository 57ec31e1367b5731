/**
 * The one place through which every grant passes before it counts, however it comes about: at once, after a queue, in a fair
 * turn, for a reader, as a permit, by re-entry.
 *
 * A grant that is not acknowledged makes its command fail as one whose outcome is unknown does: its caller takes it back.
 */
import * as Effect from "effect/Effect"
import { InvalidLockOptions, type LockStoreError } from "../../LockError.ts"
import type { Acknowledgement } from "../options/acknowledge.ts"
import type { StoreCommand } from "./operations/StoreOperation.ts"
import type { Acknowledges, Store } from "./Store.ts"

/** Runs commands whose grants need acknowledgement, by their own word or by default. */
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

/** Why a store cannot do what a request or a client asks for. */
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
