import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { InvalidLockOptions } from "effect-redis-lock"
import type { RedisOptions } from "ioredis"
import { X509Certificate } from "node:crypto"
import { readFile } from "node:fs/promises"
import { type ConnectionOptions, createSecureContext } from "node:tls"
import * as RedisUrl from "../../RedisUrl.ts"
import { given } from "./settings.ts"

type Url = string | Redacted.Redacted

/** The options of ioredis that say how to be let in by a server. */
type Access = Pick<RedisOptions, "username" | "password" | "tls">

/** The options of ioredis that name a server. */
export type Address = Access & Pick<RedisOptions, "host" | "port" | "path" | "db">

/** The other options of ioredis, overridden by the address of the server. */
export const at = (address: Address, ioredis: RedisOptions): RedisOptions => {
  const tls = address.tls ? { ...ioredis.tls, ...address.tls } : ioredis.tls
  const { path: _, ...others } = ioredis as RedisOptions & { readonly path?: string }
  return { ...(address.host === undefined ? ioredis : others), ...address, ...(tls ? { tls } : {}) }
}

/** Several servers that are connected with the same options. */
export interface Servers {
  readonly addresses: ReadonlyArray<{ readonly host: string; readonly port: number }>
  readonly access: Access
}

/** Several servers, as errors name them. */
export const shownServers = ({ addresses }: Servers): string =>
  addresses.map(({ host, port }) => `${host}:${port}`).join(", ")

export const PORT = 6379
export const SENTINEL_PORT = 26379

export const withPort = (addresses: ReadonlyArray<RedisUrl.HostAndPort>, defaultPort: number) =>
  addresses.map(({ host, port = defaultPort }) => ({ host, port }))

export const accessOf = (
  { password, username }: Pick<RedisUrl.RedisUrl, "username" | "password">,
  tls: ConnectionOptions | undefined
): Access => given({ username, password: password && Redacted.value(password), tls })

const isOther = (own: string | undefined, ofFirst: string | undefined): boolean => own !== undefined && own !== ofFirst

/** The URLs of a cluster's nodes or of sentinels. ioredis has one set of options for all: they must not contradict each other. */
export const serversOf = (
  option: "nodes" | "sentinels",
  urls: ReadonlyArray<Url>
): Effect.Effect<Servers, InvalidLockOptions> =>
  Effect.gen(function* () {
    const invalid = (problem: string, i?: number) =>
      new InvalidLockOptions({ option: i === undefined ? option : `${option}[${i}]`, problem })
    if (!Array.isArray(urls)) return yield* invalid("it must be a list of URLs")
    const addresses: Array<RedisUrl.HostAndPort> = []
    let first: RedisUrl.RedisUrl | undefined
    for (const [i, url] of urls.entries()) {
      const parsed = yield* Effect.fromResult(RedisUrl.parse(url, `${option}[${i}]`))
      const { address, database, password, tls, tlsFiles, username } = parsed
      if (address._tag !== "Host") return yield* invalid("it must be redis://host:port or rediss://host:port", i)
      if (database) return yield* invalid(`there is only database 0: leave it out`, i)
      addresses.push(address)
      first ??= parsed
      if (tls !== first.tls) return yield* invalid("all must use TLS (rediss://), or none", i)
      const isOtherUser =
        isOther(username, first.username) ||
        isOther(password && Redacted.value(password), first.password && Redacted.value(first.password))
      if (isOtherUser) return yield* invalid("user and password must be those of the first, or be left out", i)
      const { ca, cert, key } = tlsFiles ?? {}
      const files = first.tlsFiles
      if (isOther(ca, files?.ca) || isOther(cert, files?.cert) || isOther(key, files?.key)) {
        return yield* invalid("ca, cert and key must be those of the first, or be left out", i)
      }
    }
    if (first === undefined) return yield* invalid("it must not be empty")
    const tls = yield* readTls(first, `${option}[0]`)
    return { addresses: withPort(addresses, option === "nodes" ? PORT : SENTINEL_PORT), access: accessOf(first, tls) }
  })

/** Checks the URLs of the members of a quorum, and the files that they name. A server to which two of them lead would have two votes. */
export const checkMembers = (urls: ReadonlyArray<Url>): Effect.Effect<void, InvalidLockOptions> =>
  Effect.gen(function* () {
    if (!Array.isArray(urls) || urls.length === 0) {
      const problem = Array.isArray(urls) ? "it must not be empty" : "it is not an array of URLs"
      return yield* new InvalidLockOptions({ option: "urls", problem })
    }
    const memberAt = new Map<string, number>()
    for (const [i, url] of urls.entries()) {
      const option = urls.length === 1 ? "url" : `urls[${i}]`
      const parsed = yield* Effect.fromResult(RedisUrl.parse(url, option))
      for (const server of serversAt(parsed.address)) {
        const other = memberAt.get(server) ?? i
        memberAt.set(server, i)
        if (other === i) continue
        const problem = `it leads to the same server as urls[${other}]: the members of a quorum must be independent`
        return yield* new InvalidLockOptions({ option, problem })
      }
      yield* readTls(parsed, option)
    }
  })

const serversAt = (address: RedisUrl.Address): ReadonlyArray<string> => {
  const named = (port: number) => (at: RedisUrl.HostAndPort) => `${at.host.toLowerCase()}:${at.port ?? port}`
  switch (address._tag) {
    case "Host":
      return [named(PORT)(address)]
    case "Socket":
      return [address.path]
    case "Cluster":
      return address.nodes.map(named(PORT))
    case "Sentinel":
      // sentinels may watch several masters, which are independent of each other
      return address.sentinels.map((sentinel) => `${named(SENTINEL_PORT)(sentinel)}/${address.name}`)
  }
}

/** Options of TLS with the contents of these files, or undefined without TLS. Files that OpenSSL would refuse fail here. */
export const readTls = (
  { tls, tlsFiles }: RedisUrl.RedisUrl,
  option: string
): Effect.Effect<ConnectionOptions | undefined, InvalidLockOptions> =>
  Effect.gen(function* () {
    if (!tls) return undefined
    const invalid = (problem: string) => new InvalidLockOptions({ option, problem })
    const contents: { -readonly [name in keyof RedisUrl.TlsFiles]: Buffer } = {}
    for (const [name, path] of Object.entries(tlsFiles ?? {}) as ReadonlyArray<[keyof RedisUrl.TlsFiles, string]>) {
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
