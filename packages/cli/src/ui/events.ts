/**
 * Server-sent events.
 */
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { encoder } from "effect/encoding/Sse"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Stream from "effect/Stream"
import type { Events } from "./page/connection/wire.ts"

export type Event = { [Name in keyof Events]: { readonly event: Name; readonly data: Events[Name] } }[keyof Events]

/** So often something is sent, for the page to notice that a connection is dead. */
const heartbeat = "10 seconds"

/** An answer that ends with its events, or when the page leaves. */
export const eventsResponse = (events: Stream.Stream<Event>): HttpServerResponse.HttpServerResponse =>
  events.pipe(
    Stream.map(({ data, event }) => encoder.write({ _tag: "Event", event, id: undefined, data: JSON.stringify(data) })),
    Stream.merge(Stream.fromEffectSchedule(Effect.succeed(": still here\n\n"), Schedule.spaced(heartbeat)), {
      haltStrategy: "left"
    }),
    Stream.encodeText,
    (body) => HttpServerResponse.stream(body, { contentType: "text/event-stream" })
  )
