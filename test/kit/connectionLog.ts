/**
 * What the driver logs of its connections.
 */
import { Layer, Logger, References } from "effect"

interface Line {
  readonly level: string
  readonly message: string
  readonly [annotation: string]: unknown
}

/** The lines about connections that are logged from now on. */
export const recording = () => {
  const lines: Array<Line> = []
  const logger = Logger.make(({ fiber, logLevel, message }) => {
    const annotations = fiber.getRef(References.CurrentLogAnnotations)
    if ("event" in annotations) lines.push({ ...annotations, level: logLevel, message: String(message) })
  })
  const annotated = (line: Line) => `${line.level} ${String(line["event"])} ${String(line["connection"])}`
  return {
    lines,
    logged: () => lines.map(annotated),
    layer: Layer.mergeAll(Logger.layer([logger]), Layer.succeed(References.MinimumLogLevel, "Info"))
  }
}
