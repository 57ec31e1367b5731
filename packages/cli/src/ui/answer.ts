/**
 * A short answer to the page: a sentence.
 */
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import { quoted } from "../visible.ts"
import type { Answer } from "./page/connection/wire.ts"

export const answer = (status: number, message: string): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.jsonUnsafe({ message } satisfies Answer, { status })

/** The pattern on the command line says for which names the page was started. */
export const notServed = (name: string): string =>
  `${quoted(name)} does not match the pattern of this page: redis-lock ui was started for other names`
