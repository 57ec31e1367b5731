/** The value below which the given share of the values lies; the values are sorted in place. */
export const percentile = (values: Float64Array, share: number): number => {
  values.sort()
  return values.length === 0 ? Number.NaN : values[Math.min(values.length - 1, Math.floor(share * values.length))]!
}

export const median = (values: ReadonlyArray<number>): number => {
  const sorted = Float64Array.from(values).sort()
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

/** Jain's index: 1 if all had the same share, 1/n if one had everything. */
export const jain = (shares: ReadonlyArray<number>): number => {
  let sum = 0
  let squares = 0
  for (const share of shares) {
    sum += share
    squares += share * share
  }
  return squares === 0 ? Number.NaN : (sum * sum) / (shares.length * squares)
}
