import { type Keyspace, WrongType } from "../keyspace/Keyspace.ts"

/** The number under a key, if there is one. */
export const counter = (db: Keyspace, key: string): number | undefined => {
  const text = db.getString(key)
  if (text === undefined) return undefined
  const value = Number(text)
  if (Number.isNaN(value)) throw new WrongType("not a counter")
  return value
}
