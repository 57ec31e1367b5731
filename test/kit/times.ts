/**
 * How many times as much as the gate tests at random: `TIMES`, which `pnpm programs` sets.
 */
export const times = Number(process.env["TIMES"] ?? 1)
