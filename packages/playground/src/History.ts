/**
 * What happened in a world of `pnpm worlds` that failed, as the file that it writes and the playground opens.
 */
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"

/** Times are milliseconds since the beginning of the world. */
export const History = Schema.Struct({
  title: Schema.String,
  problem: Schema.String,
  /** When the world failed. */
  end: Schema.Number,
  /** Who held what, for each worker; a hold without an end lasted until the world failed. */
  lanes: Schema.Array(
    Schema.Struct({
      name: Schema.String,
      holds: Schema.Array(
        Schema.Struct({ what: Schema.String, from: Schema.Number, to: Schema.optional(Schema.Number) })
      )
    })
  ),
  events: Schema.Array(Schema.Struct({ at: Schema.Number, text: Schema.String }))
})

export type History = typeof History.Type

/** Reads such a file; undefined if it is none. */
export const parseHistory = (text: string): History | undefined =>
  Option.getOrUndefined(Schema.decodeUnknownOption(Schema.fromJsonString(History))(text))
