/**
 * Durations as they are written on a command line: `500ms`, `10s`, `1h30m`, or a plain number of seconds.
 */
import * as Duration from "effect/Duration"
import * as Option from "effect/Option"

const unitMillis: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }

export const parse = (text: string): Option.Option<Duration.Duration> => {
  if (/^\d+(\.\d+)?$/.test(text)) return Option.some(Duration.seconds(Number(text)))
  if (!/^(\d+(\.\d+)?(ms|s|m|h))+$/.test(text)) return Option.none()
  let millis = 0
  for (const [, amount, unit] of text.matchAll(/([\d.]+)([a-z]+)/g)) millis += Number(amount) * unitMillis[unit!]!
  return Option.some(Duration.millis(millis))
}

/** `9.5s`, `12m05s`, `3h00m`: the two units that matter. */
export const format = (duration: Duration.Duration): string => {
  const seconds = Duration.toSeconds(duration)
  if (seconds < 59.95) return `${seconds.toFixed(1)}s`
  const minutes = Math.floor(seconds / 60)
  const two = (n: number) => String(n).padStart(2, "0")
  return minutes < 60
    ? `${minutes}m${two(Math.floor(seconds % 60))}s`
    : `${Math.floor(minutes / 60)}h${two(minutes % 60)}m`
}
