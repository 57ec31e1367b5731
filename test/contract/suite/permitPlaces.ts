/**
 * Semaphores as the stores see them: requests of clients that take places, and whatever sets permits free.
 */
import { Effect } from "effect"
import { until } from "../../kit/eventually.ts"
import { freshName } from "../../kit/names.ts"
import { runOperation } from "../../kit/storeOperations.ts"
import type { Store } from "../../kit/wrappedStore.ts"

/** How fibers of a client ask. */
export interface Ask {
  readonly wanted?: number
  readonly ifDenied?: number
  readonly ifGranted?: number
  /** Whether it is one that waits already. */
  readonly waits?: boolean
}

/**
 * Since when each client has waited, as clients tell it: in whole milliseconds, and a place is as old as the request is when it comes. Clients
 * here ask closer to each other than that, so one that waits says that it has waited for longer: it keeps its rank on a slow machine.
 */
const waits = () => {
  const ahead = 50
  const since = new Map<string, number>()
  const asking = (client: string, { ifDenied, ifGranted = 0, wanted = 1, waits = false }: Ask) => {
    const now = performance.now()
    if (!since.has(client)) since.set(client, now)
    const waited = Math.round(now - since.get(client)!) + (waits ? ahead : 0)
    return [client, ifDenied ?? wanted, waited, ifGranted, 0, waits ? 0 : 1]
  }
  return { asking, served: (client: string) => since.delete(client) }
}

let requests = 0

/** A semaphore that begins with so many permits, asked about without any client. */
export const semaphores = {
  Semaphore: (store: Store, begins: number) => {
    const key = freshName("places")
    const [ids, channel] = [`{${key}}:timeout`, `redisson_sc:{${key}}`]
    const tells = [channel, `effect_redis_lock_permit_places:{${key}}`, `effect_redis_lock_permit_wants:{${key}}`]
    const marker = (grant: string) => `effect_redis_lock_grant:{${key}}:${grant}`
    const { asking, served } = waits()
    const ask = (client: string, how: Ask = {}) => {
      const { wanted = 1 } = how
      const grant = `${client}:${++requests}`
      return Effect.map(
        runOperation(
          store,
          "semaphore/acquire",
          [key, ids, marker(grant), ...tells],
          [begins, wanted, 60_000, store.publish, ...asking(client, how)]
        ),
        (reply) => {
          const [granted, free, , left] = reply as [number, number, number, number]
          if (granted === 1) served(client)
          return { isGranted: granted === 1, free, left, grant }
        }
      )
    }
    return {
      key,
      channel,
      ask,
      giveBack: (grant: string, permits = 1) =>
        runOperation(store, "semaphore/return", [key, marker(grant), ...tells], [permits, 0, store.publish]),
      add: (permits: number) =>
        runOperation(store, "semaphore/add", [key, ids, ...tells], ["", permits, 1, store.publish]),
      leave: (client: string) => runOperation(store, "semaphore/leave", [key, ...tells], [client, store.publish]),
      /** Ends the leases of a grant's permits, and tells nobody. */
      endLeases: (_grant: string) => Effect.die(new Error("anonymous permits have no leases"))
    }
  },
  PermitSemaphore: (store: Store, begins: number) => {
    const key = freshName("places")
    const [ids, channel] = [`{${key}}:timeout`, `redisson_sc:{${key}}`]
    const tells = [channel, `effect_redis_lock_permit_places:{${key}}`, `effect_redis_lock_permit_wants:{${key}}`]
    const { asking, served } = waits()
    const ask = (client: string, how: Ask = {}) => {
      const { wanted = 1 } = how
      const grant = Array.from({ length: wanted }, () => (++requests).toString(16).padStart(32, "0"))
      return Effect.map(
        runOperation(
          store,
          "permit_semaphore/acquire",
          [key, ids, ...tells],
          [begins, 60_000, store.publish, ...asking(client, how), ...grant]
        ),
        (reply) => {
          const [granted, free, left] = reply as [number, number, number]
          if (granted === 1) served(client)
          return { isGranted: granted === 1, free, left, grant: grant.join() }
        }
      )
    }
    return {
      key,
      channel,
      ask,
      giveBack: (grant: string) =>
        runOperation(store, "permit_semaphore/release", [key, ids, ...tells], [store.publish, ...grant.split(",")]),
      add: (permits: number) =>
        runOperation(store, "permit_semaphore/add", [key, ids, ...tells], ["", permits, store.publish]),
      leave: (client: string) => runOperation(store, "semaphore/leave", [key, ...tells], [client, store.publish]),
      endLeases: (grant: string) =>
        Effect.gen(function* () {
          for (const id of grant.split(",")) yield* runOperation(store, "permit_semaphore/update_lease", [ids], [id, 1])
          const look = runOperation(store, "lock/look", [key, key, channel, channel, ids, channel], [0])
          const isHeld = Effect.map(look, (found) => (found as ReadonlyArray<number>)[9]! > 0)
          yield* until(
            "the leases have ended",
            Effect.map(isHeld, (it) => !it)
          )
        })
    }
  }
}
