import { type Keyspace, WrongType } from "../keyspace/Keyspace.ts"

/** The number under a key, if there is one. */
export const counter = (db: Keyspace, key: string): number | undefined => {
  const text = db.getString(key)
  if (text === undefined) return undefined
  const value = Number(text)
  if (Number.isNaN(value)) throw new WrongType("not a counter")
  return value
}

/** Publishes how many permits are free, unless there are none; returns the number of listeners. */
export const announce = (db: Keyspace, channel: string, available: number): number =>
  available > 0 ? db.publish(channel, String(available)) : 0
