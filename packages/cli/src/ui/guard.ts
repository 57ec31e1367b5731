/**
 * Who may ask: requests of the page itself, from names under which we know this machine, with the token if there is one.
 */
import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as Redacted from "effect/Redacted"
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto"
import { isIP } from "node:net"
import { hostname } from "node:os"
import { isLoopback } from "./loopback.ts"

export interface Access {
  /** Where the server listens. */
  readonly host: string
  /** Other names under which the page is reached, as behind a proxy. */
  readonly otherNames: ReadonlyArray<string>
  readonly token: Redacted.Redacted | undefined
}

export interface Refusal {
  readonly status: 400 | 401 | 403
  readonly message: string
}

/** The host of `name:port`, without brackets. */
const nameIn = (host: string): string | undefined => {
  const match = /^(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::\d{1,5})?$/i.exec(host)
  return (match?.[1] ?? match?.[2])?.toLowerCase()
}

/**
 * Whether a browser that sent this header can only mean us. A page of somebody else's can make its own name lead to this machine (DNS
 * rebinding), and would then read our answers as its own: so a name must be one of ours. Addresses cannot be made to lead elsewhere.
 */
const isOurs = (name: string, { host, otherNames }: Access): boolean =>
  isLoopback(name) ||
  (!isLoopback(host) && (isIP(name) !== 0 || name === host.toLowerCase() || name === hostname().toLowerCase())) ||
  otherNames.some((other) => other.toLowerCase() === name)

/** Refuses a request that the page itself would not send. */
export const refuseStranger = ({ headers, method }: HttpServerRequest, access: Access): Refusal | undefined => {
  const host = headers["host"] ?? ""
  const name = nameIn(host)
  if (name === undefined || !isOurs(name, access)) {
    return { status: 403, message: "this is not a name of this server: see --allow-host" }
  }
  const origin = headers["origin"]
  const isWrite = method !== "GET" && method !== "HEAD"
  const isOwn = origin === `http://${host}` || origin === `https://${host}`
  if (origin === undefined ? isWrite : !isOwn) {
    return { status: 403, message: "the request does not come from this page" }
  }
  return undefined
}

/** Refuses data to pages of others, and to all who do not know the token. */
export const refuseReader = ({ headers }: HttpServerRequest, { token }: Access): Refusal | undefined => {
  const site = headers["sec-fetch-site"]
  if (site !== undefined && site !== "same-origin" && site !== "none") {
    return { status: 403, message: "the request comes from another page" }
  }
  if (token === undefined) return undefined
  const given = /^Bearer (.+)$/i.exec(headers["authorization"] ?? "")?.[1]
  return given !== undefined && isSame(given, Redacted.value(token))
    ? undefined
    : { status: 401, message: given === undefined ? "a token is needed" : "the token is wrong" }
}

const key = randomBytes(32)
const digest = (text: string) => createHmac("sha256", key).update(text).digest()

/** Takes as long for a token that is almost right as for any other. */
const isSame = (a: string, b: string): boolean => timingSafeEqual(digest(a), digest(b))
