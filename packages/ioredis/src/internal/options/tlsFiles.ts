import * as Effect from "effect/Effect"
import { InvalidLockOptions } from "effect-redis-lock"
import { X509Certificate } from "node:crypto"
import { readFile } from "node:fs/promises"
import { type ConnectionOptions, createSecureContext } from "node:tls"
import type { TlsFiles } from "../../RedisUrl.ts"

/** Options of TLS with the contents of these files, or undefined without TLS. Files that OpenSSL would refuse fail here. */
export const readTls = (
  { tls, tlsFiles }: { readonly tls: boolean; readonly tlsFiles?: TlsFiles },
  option: string
): Effect.Effect<ConnectionOptions | undefined, InvalidLockOptions> =>
  Effect.gen(function* () {
    if (!tls) return undefined
    const invalid = (problem: string) => new InvalidLockOptions({ option, problem })
    const contents: { -readonly [name in keyof TlsFiles]: Buffer } = {}
    for (const [name, path] of Object.entries(tlsFiles ?? {}) as ReadonlyArray<[keyof TlsFiles, string]>) {
      contents[name] = yield* Effect.tryPromise({
        try: () => readFile(path),
        catch: (error) =>
          invalid(`the file that ${name} names cannot be read (${String((error as { code?: unknown }).code)})`)
      })
    }
    const { ca, cert, key } = contents
    yield* Effect.try({
      try: () => ca && new X509Certificate(ca),
      catch: () => invalid("the file that ca names has no certificate in PEM format")
    })
    yield* Effect.try({
      try: () => cert && key && createSecureContext({ cert, key }),
      catch: () =>
        invalid(
          "the files that cert and key name are not a certificate and its private key, in PEM format and without a passphrase"
        )
    })
    return contents
  })
