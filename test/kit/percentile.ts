/** The nearest-rank percentile. */
export const percentile = (values: ReadonlyArray<number>, percent: number): number => {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil((sorted.length * percent) / 100) - 1)] ?? Number.NaN
}
