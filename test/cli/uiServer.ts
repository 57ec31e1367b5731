/**
 * A `redis-lock ui` that runs, and requests to it.
 */
import { Effect, type Scope } from "effect"
import { request as httpRequest, type IncomingMessage } from "node:http"
import { type Options, type Running, start } from "./redisLock.ts"

export interface Ui {
  readonly port: number
  /** Without a slash at its end. */
  readonly origin: string
  readonly running: Running
  /** What its own page sends with each request; empty without a token. */
  readonly authorization: Record<string, string>
}

export const theToken = "0123456789abcdef-token"

/**
 * Starts it, at a free port of this machine unless the arguments name one. One that may free locks has a token, which is sent with each
 * request.
 */
export const startUi = (args: ReadonlyArray<string>, options?: Options): Effect.Effect<Ui, never, Scope.Scope> =>
  Effect.gen(function* () {
    const token = args.includes("--allow-release") ? { REDIS_LOCK_UI_TOKEN: theToken } : {}
    const running = yield* start(
      [
        "ui",
        ...(args.includes("--port") ? [] : ["--port", "0"]),
        ...(args.includes("--interval") ? [] : ["--interval", "100ms"]),
        ...args
      ],
      { ...options, env: { ...token, ...options?.env } }
    )
    const port = yield* running.number("redis-lock ui: http://[\\d.]+:")
    const authorization: Record<string, string> =
      token.REDIS_LOCK_UI_TOKEN === undefined ? {} : { authorization: `Bearer ${theToken}` }
    return { port, origin: `http://127.0.0.1:${port}`, running, authorization }
  })

export interface Reply {
  readonly status: number
  readonly headers: IncomingMessage["headers"]
  readonly text: string
}

export interface Asked {
  readonly method?: string
  readonly headers?: Record<string, string>
  readonly body?: string
}

const bodyOf = async (response: IncomingMessage): Promise<string> => {
  // an answer that has no end
  if (response.statusCode === 200 && response.headers["content-type"] === "text/event-stream") {
    response.destroy()
    return ""
  }
  let text = ""
  for await (const chunk of response.setEncoding("utf8")) text += String(chunk)
  return text
}

/** Not by `fetch`, which does not let a test choose Host, nor Origin. */
export const ask = (
  { authorization, port }: Ui,
  path: string,
  { body, headers: others, method = "GET" }: Asked = {}
): Effect.Effect<Reply> =>
  Effect.promise(
    () =>
      new Promise<Reply>((resolve, reject) => {
        const headers = { ...authorization, ...others }
        const request = httpRequest({ host: "127.0.0.1", port, path, method, headers, agent: false }, (response) => {
          const { headers, statusCode } = response
          bodyOf(response).then((text) => resolve({ status: statusCode!, headers, text }), reject)
        })
        request.on("error", reject).end(body)
      })
  )

/** A request to free a lock, as the page sends it. */
export const askToFree = (ui: Ui, name: string, seen: ReadonlyArray<string>, headers: Record<string, string> = {}) =>
  ask(ui, "/api/release", {
    method: "POST",
    headers: { "content-type": "application/json", origin: ui.origin, ...headers },
    body: JSON.stringify({ name, seen })
  })

export interface ServerEvent {
  readonly event: string
  readonly data: any
}

/** All events from now on, as they come, until the scope closes. */
export const eventsOf = (
  { authorization, origin }: Ui,
  path: string,
  headers: Record<string, string> = {}
): Effect.Effect<Array<ServerEvent>, never, Scope.Scope> =>
  Effect.gen(function* () {
    const controller = yield* Effect.acquireRelease(
      Effect.sync(() => new AbortController()),
      (controller) => Effect.sync(() => controller.abort())
    )
    const response = yield* Effect.promise(() =>
      fetch(`${origin}${path}`, { headers: { ...authorization, ...headers }, signal: controller.signal })
    )
    const events: Array<ServerEvent> = []
    const read = async (): Promise<void> => {
      let text = ""
      for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
        text += chunk
        const whole = text.split("\n\n")
        text = whole.pop()!
        for (const lines of whole) {
          const match = /^event: ([^\n]*)\ndata: ([^\n]*)$/.exec(lines)
          if (match !== null) events.push({ event: match[1]!, data: JSON.parse(match[2]!) })
        }
      }
    }
    read().catch(() => {})
    return events
  })
