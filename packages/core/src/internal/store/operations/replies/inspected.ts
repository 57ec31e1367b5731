/**
 * What Redis has of a lock.
 */
export type Inspected = readonly [remaining: number, token: string | null, fields: ReadonlyArray<string>]

/** What a majority agrees on: those that hold on enough members, until enough leases have run out. */
export const inspectedByMajority = (replies: ReadonlyArray<Inspected>, required: number): Inspected => {
  const counts = new Map<string, Array<string>>()
  for (const [, , fields] of replies) {
    for (let i = 0; i < fields.length; i += 2) {
      const values = counts.get(fields[i]!)
      if (values === undefined) counts.set(fields[i]!, [fields[i + 1]!])
      else values.push(fields[i + 1]!)
    }
  }
  const agreed = [...counts].filter(([, values]) => values.length >= required)
  // the last that a majority knows of: one of a minority was not granted
  const tokens = replies.map(([, token]) => Number(token ?? 0)).sort((a, b) => b - a)
  const token = tokens[required - 1] === 0 ? null : String(tokens[required - 1])
  if (agreed.every(([field]) => field === "mode")) return [-2, token, []]
  const remaining = replies.map(([left]) => (left === -1 ? Number.POSITIVE_INFINITY : left)).sort((a, b) => b - a)
  const left = remaining[required - 1]!
  return [
    left === Number.POSITIVE_INFINITY ? -1 : left,
    token,
    agreed.flatMap(([field, values]) => [field, known(values, required)])
  ]
}

/** The value that a majority has, or for a hold count the highest that a majority has reached. */
const known = (values: ReadonlyArray<string>, required: number): string =>
  values.find((value) => values.filter((other) => other === value).length >= required) ??
  values.toSorted((a, b) => Number(b) - Number(a))[required - 1]!
