/**
 * What the locks and the driver log, as lines of redis-lock.
 */
import * as Logger from "effect/Logger"
import * as References from "effect/References"

/**
 * Writes each warning as one line, like all our messages, and nothing about which there is nothing to do. Of a connection's events it
 * writes only refusals: the command need not know of a connection that is lost and restored at once. The connections to a server, one for
 * commands and one for messages, are refused for the same reason, which is written once in each outage.
 */
export const make = (write: (line: string) => void): Logger.Logger<unknown, void> => {
  /** The last refusal by each server. */
  const refusals = new Map<unknown, string>()
  return Logger.make(({ fiber, logLevel, message }) => {
    const { event, server } = fiber.getRef(References.CurrentLogAnnotations)
    if (event === "restored") refusals.delete(server)
    if (event === "lost" || logLevel === "Info") return
    const parts = Array.isArray(message) ? message : [message]
    const line = parts.map((part) => (part instanceof Error ? part.message : String(part))).join(" ")
    if (event === "refused") {
      if (refusals.get(server) === line) return
      refusals.set(server, line)
    }
    write(line)
  })
}
