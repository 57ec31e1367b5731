import * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import { InvalidLockOptions } from "effect-redis-lock"
import * as RedisUrl from "../../RedisUrl.ts"
import { readTls } from "./tlsFiles.ts"

/** Checks the URLs of the members of a quorum, and the files that they name. A server to which two of them lead would have two votes. */
export const checkMembers = (
  urls: ReadonlyArray<string | Redacted.Redacted>
): Effect.Effect<void, InvalidLockOptions> =>
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
      return [named(6379)(address)]
    case "Socket":
      return [address.path]
    case "Cluster":
      return address.nodes.map(named(6379))
    case "Sentinel":
      // sentinels may watch several masters, which are independent of each other
      return address.sentinels.map((sentinel) => `${named(26379)(sentinel)}/${address.name}`)
  }
}
