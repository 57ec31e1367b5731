/**
 * Durations as they are written on a command line: `500ms`, `10s`, `1h30m`, or a plain number of seconds.
 */
import * as Duration from "effect/Duration"
import * as Option from "effect/Option"
import { span } from "./span.ts"

const unitMillis: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }

export const parse = (text: string): Option.Option<Duration.Duration> => {
  if (/^\d+(\.\d+)?$/.test(text)) return Option.some(Duration.seconds(Number(text)))
  if (!/^(\d+(\.\d+)?(ms|s|m|h))+$/.test(text)) return Option.none()
  let millis = 0
  for (const [, amount, unit] of text.matchAll(/([\d.]+)([a-z]+)/g)) millis += Number(amount) * unitMillis[unit!]!
  return Option.some(Duration.millis(millis))
}

/** `9.5s`, `12m05s`, `3h00m`. */
export const format = (duration: Duration.Duration): string => span(Duration.toMillis(duration))
