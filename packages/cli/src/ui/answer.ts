/**
 * A short answer to the page: a sentence.
 */
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import type { Answer } from "./page/connection/wire.ts"

export const answer = (status: number, message: string): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.jsonUnsafe({ message } satisfies Answer, { status })
