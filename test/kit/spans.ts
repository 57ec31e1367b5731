import { Effect, Tracer } from "effect"

/** A tracer, and the spans that it has begun. */
export const recordSpans = Effect.sync(() => {
  const spans: Array<Tracer.Span> = []
  const tracer = Tracer.make({
    span: (options) => {
      const span = new Tracer.NativeSpan(options)
      spans.push(span)
      return span
    }
  })
  return { spans, tracer }
})

/** How a span has ended. */
export const endOf = (span: Tracer.Span | undefined): "Success" | "Failure" | undefined =>
  span?.status._tag === "Ended" ? span.status.exit._tag : undefined

export const attributesOf = (span: Tracer.Span | undefined): Record<string, unknown> =>
  Object.fromEntries(span?.attributes ?? [])
