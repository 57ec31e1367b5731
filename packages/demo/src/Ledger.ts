/**
 * The ledger: one file with one number in it. Reading is one step and writing is another, as with any file, table or
 * remote API that has no transactions.
 */
import { Context, Effect, FileSystem, Layer, Schema } from "effect"

/** The contents of the file. `token` is the highest fencing token of all writes. */
const Page = Schema.fromJsonString(Schema.Struct({ balance: Schema.Int, token: Schema.BigIntFromString }))

/** A late write: a later holder of the lock has written already. */
export class StaleToken extends Schema.TaggedError<StaleToken>()("StaleToken", {
  token: Schema.BigInt,
  highest: Schema.BigInt
}) {
  override get message(): string {
    return `${this.token} is an old token.`
  }
}

export class Ledger extends Context.Service<
  Ledger,
  {
    readonly file: string
    readonly balance: Effect.Effect<number>
    /** Writes the balance. With a fencing token, only if no higher one has written before. */
    readonly write: (balance: number, token?: bigint) => Effect.Effect<void, StaleToken>
  }
>()("@effect-redis-lock/demo/Ledger") {
  /** An existing ledger. */
  static readonly layer = (file: string): Layer.Layer<Ledger, never, FileSystem.FileSystem> =>
    Layer.effect(Ledger, open(file))

  /** A new ledger, with nothing in it. */
  static readonly layerNew = (file: string): Layer.Layer<Ledger, never, FileSystem.FileSystem> =>
    Layer.effect(Ledger, Effect.andThen(create(file), open(file)))
}

const create = Effect.fnUntraced(function* (file: string) {
  const fs = yield* FileSystem.FileSystem
  yield* fs.writeFileString(file, Schema.encodeSync(Page)({ balance: 0, token: 0n }))
}, Effect.orDie)

const open = Effect.fnUntraced(function* (file: string) {
  const fs = yield* FileSystem.FileSystem
  const draft = `${file}.${crypto.randomUUID()}`

  const read = fs.readFileString(file).pipe(Effect.flatMap(Schema.decodeEffect(Page)), Effect.orDie)

  return Ledger.of({
    file,

    balance: Effect.map(read, ({ balance }) => balance),

    // A database would compare and write in one step: UPDATE ... WHERE token <= ?
    write: Effect.fnUntraced(function* (balance: number, token?: bigint) {
      const { token: highest } = yield* read
      if (token !== undefined && token < highest) return yield* new StaleToken({ token, highest })
      const page = yield* Effect.orDie(Schema.encodeEffect(Page)({ balance, token: token ?? highest }))
      // renamed into place, so that nobody ever reads half a page
      yield* fs.writeFileString(draft, page).pipe(Effect.andThen(fs.rename(draft, file)), Effect.orDie)
    })
  })
})
