/**
 * The places of clients that wait for permits, on a {@link Keyspace}: `lua/include/permit_places/`.
 */
import { isDue } from "../../operations/counters/isDue.ts"
import type { Keyspace } from "../keyspace/Keyspace.ts"

/** How long places are kept after the last request, milliseconds. */
const placesLife = 60_000

/** How long a client that was told that its permits are free may take to ask for them, microseconds. */
const lateAfter = 2_000_000

/** Of the turns of clients that take no places: the interval and the duration, microseconds. */
const [turnEvery, turnLasts] = [100_000, 10_000]

const mostLooks = 100

interface Place {
  readonly client: string
  readonly since: number
  readonly wanted: number
  readonly told: number | undefined
}

const placeAt = (db: Keyspace, places: string, wants: string, rank: number): Place | undefined => {
  const place = db.zset(places)[rank]
  if (place === undefined) return undefined
  const [client, since] = place
  const [wanted, told] = (db.hash(wants)?.get(client) ?? "1").split(" ")
  return { client, since, wanted: Number(wanted), told: told === undefined ? undefined : Number(told) }
}

const isPlaceDue = (db: Keyspace, { since, wanted }: Place): boolean => isDue((db.timeMicros() - since) / 1000, wanted)

const isLate = (db: Keyspace, { told }: Place): boolean =>
  told !== undefined && (db.timeMicros() - told >= lateAfter || db.timeMicros() < told)

const remove = (db: Keyspace, places: string, wants: string, client: string): boolean => {
  const had = db.zrem(places, client)
  db.hdel(wants, client)
  return had
}

const tellOne = (
  db: Keyspace,
  channel: string,
  wants: string,
  { client, wanted }: Place,
  available: number
): boolean => {
  if (db.publish(`${channel}:${client}`, String(available)) === 0) return false
  db.hset(wants, client, `${wanted} ${db.timeMicros()}`)
  return true
}

const startTurnOfOthers = (db: Keyspace, wants: string, hasPlaces: boolean): void => {
  const since = db.timeMicros() - Number(db.hash(wants)?.get("") ?? 0)
  if (since >= 0 && since < turnEvery) return
  db.hset(wants, "", String(db.timeMicros()))
  if (!hasPlaces) db.expire(wants, turnEvery / 1000)
}

/** `lua/include/permit_places/tell.lua`; returns how many clients heard it on the shared channel. */
export const tell = (db: Keyspace, [channel, places, wants]: ReadonlyArray<string>, available: number): number => {
  if (available <= 0) return 0
  const hasPlaces = places !== undefined && db.exists(places)
  const listeners = hasPlaces ? 0 : db.publish(channel!, String(available))
  if (places === undefined || (!hasPlaces && listeners === 0)) return listeners
  if (db.listeners(channel!) > db.listeners(`${channel}:ours`)) {
    if (hasPlaces) db.publish(channel!, `0${available}`)
    startTurnOfOthers(db, wants!, hasPlaces)
  }
  if (!hasPlaces) return listeners
  let left = available
  let rank = 0
  for (let looks = 0; looks < mostLooks && left > 0; looks++) {
    const place = placeAt(db, places, wants!, rank)
    if (place === undefined) break
    if (isLate(db, place)) {
      remove(db, places, wants!, place.client)
    } else if (place.told !== undefined) {
      left -= place.wanted
      rank++
    } else if (place.wanted <= left) {
      if (tellOne(db, channel!, wants!, place, available)) {
        left -= place.wanted
        rank++
      } else {
        remove(db, places, wants!, place.client)
      }
    } else if (rank === 0 && isPlaceDue(db, place)) {
      break
    } else {
      rank++
    }
  }
  return listeners
}

/** What a request says of the place of its client. */
export interface Asking {
  readonly keys: ReadonlyArray<string>
  readonly client: string
  readonly ifDenied: string
  readonly ifGranted: string
  readonly who: string
}

/** `lua/include/permit_places/kept.lua` */
export const keptBack = (
  db: Keyspace,
  asking: Asking | undefined,
  available: number | undefined,
  wanted: number
): { readonly kept: number; readonly left: number } => {
  if (asking === undefined || available === undefined || available < wanted) return { kept: 0, left: -1 }
  const [channel, places, wants] = asking.keys as [string, string, string]
  const turn = db.hash(wants)?.get("")
  const since = turn === undefined ? turnLasts : db.timeMicros() - Number(turn)
  if (since >= 0 && since < turnLasts) return { kept: available, left: Math.ceil((turnLasts - since) / 1000) }
  for (let looks = 0; looks < mostLooks; looks++) {
    const place = placeAt(db, places, wants, 0)
    if (place === undefined || place.client === asking.client || !isPlaceDue(db, place)) break
    if (available - place.wanted >= wanted) break
    if (!isLate(db, place) && db.listeners(`${channel}:${place.client}`) > 0) {
      if (place.told === undefined && place.wanted <= available) tellOne(db, channel, wants, place, available)
      return { kept: Math.min(place.wanted, available), left: -1 }
    }
    remove(db, places, wants, place.client)
  }
  return { kept: 0, left: -1 }
}

/** `lua/include/permit_places/take_place.lua` */
export const takePlace = (db: Keyspace, asking: Asking | undefined, isGranted: boolean): void => {
  if (asking === undefined) return
  const { client, ifDenied, ifGranted, who } = asking
  const [, places, wants] = asking.keys as [string, string, string]
  if (isGranted && who === "new") return
  const next = isGranted ? ifGranted : ifDenied
  if (next === "0") {
    if (isGranted) remove(db, places, wants, client)
    return
  }
  const before = who === "new" ? db.hash(wants)?.get(client)?.split(" ")[0] : undefined
  if ((isGranted && who === "oldest") || db.zscore(places, client) === undefined) {
    db.zadd(places, db.timeMicros(), client)
  }
  db.hset(wants, client, before !== undefined && Number(before) < Number(next) ? before : next)
  db.expire(places, placesLife)
  db.expire(wants, placesLife)
}

/** `lua/semaphore/leave.lua` */
export const leave = (
  db: Keyspace,
  keys: ReadonlyArray<string>,
  client: string,
  available: () => number | undefined
): number => {
  if (!remove(db, keys[1]!, keys[2]!, client)) return 0
  tell(db, keys, available() ?? 0)
  return 1
}
