/**
 * Spans of time as people see them, on a terminal and on the page of `redis-lock ui`.
 */

/** `9.5s`, `12m05s`, `3h00m`: the two units that matter. */
export const span = (millis: number): string => {
  const seconds = millis / 1000
  if (seconds < 59.95) return `${seconds.toFixed(1)}s`
  const minutes = Math.floor(seconds / 60)
  const two = (n: number) => String(n).padStart(2, "0")
  return minutes < 60
    ? `${minutes}m${two(Math.floor(seconds % 60))}s`
    : `${Math.floor(minutes / 60)}h${two(minutes % 60)}m`
}
