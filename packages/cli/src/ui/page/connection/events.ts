/**
 * Server-sent events over `fetch`, which can send a token, as an `EventSource` cannot.
 */
import { request } from "./session.ts"
import type { Events } from "./wire.ts"

export type ConnectionState = "connecting" | "live" | "lost" | "token"

/** What to do with events, by their names. */
export type Handlers = { readonly [Name in keyof Events]?: (data: Events[Name]) => void }

/** The server sends something every ten seconds. */
const silenceMillis = 30_000
const longestPause = 4000

/** Listens, also through ends of the server, until it is closed. A page that nobody sees does not listen. */
export const listen = (
  path: string,
  onState: (state: ConnectionState) => void,
  handlers: Handlers
): { readonly close: () => void } => {
  let controller: AbortController | undefined
  let timer: ReturnType<typeof setTimeout> | undefined
  let pause = 250

  const again = () => {
    timer = setTimeout(start, pause)
    pause = Math.min(pause * 2, longestPause)
  }

  const start = async (): Promise<void> => {
    const current = new AbortController()
    controller = current
    try {
      const response = await request(path, { signal: current.signal })
      if (response.status === 401) return onState("token")
      if (!response.ok || response.body === null) throw new Error(`the server answered ${response.status}`)
      onState("live")
      pause = 250
      await read(response.body, current, handlers)
      throw new Error("the server has ended")
    } catch {
      if (controller !== current) return
      onState("lost")
      again()
    }
  }

  const stop = () => {
    clearTimeout(timer)
    const current = controller
    controller = undefined
    current?.abort()
  }

  const onVisibility = () => {
    stop()
    if (!document.hidden) void start()
  }

  document.addEventListener("visibilitychange", onVisibility)
  onVisibility()
  return {
    close: () => {
      document.removeEventListener("visibilitychange", onVisibility)
      stop()
    }
  }
}

const read = async (
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
  controller: AbortController,
  handlers: Handlers
): Promise<void> => {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader()
  let text = ""
  while (true) {
    const silence = setTimeout(() => controller.abort(), silenceMillis)
    const { done, value } = await reader.read().finally(() => clearTimeout(silence))
    if (done) return
    text += value
    const events = text.split("\n\n")
    text = events.pop()!
    for (const lines of events) {
      // not `.`, which ends at U+2028 and U+2029: JSON leaves these as they are
      const event = /^event: ([^\n]*)/m.exec(lines)?.[1] as keyof Events | undefined
      const data = /^data: ([^\n]*)/m.exec(lines)?.[1]
      if (event !== undefined && data !== undefined) handlers[event]?.(JSON.parse(data))
    }
  }
}
