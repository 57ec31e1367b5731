const most = 3

/** An owner in messages: of many permits, the first ids and the number of the others. */
export const ownerText = (owner: string): string => {
  const ids = owner.split(",")
  return ids.length <= most ? owner : `${ids.slice(0, most).join(",")} and ${ids.length - most} more`
}
