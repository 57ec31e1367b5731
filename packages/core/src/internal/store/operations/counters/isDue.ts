/**
 * Whether free permits are kept for the waiter that has waited longest. More than one may be more than there will ever be: then they are
 * kept for it during half of the time, in turns that grow, so that one of them is longer than whatever section it waits for. As
 * `lua/include/permit_places/place_at.lua`.
 */
export const isDue = (waitedMillis: number, permits: number): boolean =>
  permits === 1 ? waitedMillis >= 100 : waitedMillis >= 1000 && Math.floor(Math.log2(waitedMillis / 1000)) % 2 === 0
