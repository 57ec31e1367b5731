/**
 * Values as JSON text, encoded and decoded by a Schema of the user's.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"

/** A Schema that needs no services, for a value that is kept as JSON. */
export type ValueSchema<A> = Schema.Codec<A, unknown>

export interface JsonText<A> {
  encode(value: A): Effect.Effect<string, Schema.SchemaError>
  decode(text: string): Effect.Effect<A, Schema.SchemaError>
}

export const jsonText = <A>(schema: ValueSchema<A>): JsonText<A> => {
  const codec = Schema.fromJsonString(Schema.toCodecJson(schema))
  return { encode: Schema.encodeEffect(codec), decode: Schema.decodeEffect(codec) }
}

/** The decoded value; `None`, with a warning, if another version of the program wrote one that this Schema does not know. */
export const decodeOrWarn = <A>(
  { decode }: JsonText<A>,
  text: string,
  annotations: Record<string, unknown>
): Effect.Effect<Option.Option<A>> =>
  Effect.matchEffect(decode(text), {
    onSuccess: Effect.succeedSome,
    onFailure: (error) =>
      Effect.as(
        Effect.annotateLogs(
          Effect.logWarning("The leader has proclaimed a value that this process's Schema cannot decode.", error),
          annotations
        ),
        Option.none<A>()
      )
  })
