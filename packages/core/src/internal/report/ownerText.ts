const most = 3

/** An owner for people: of many permits the first ids, and how many more there are. */
export const ownerText = (owner: string): string => {
  const ids = owner.split(",")
  return ids.length <= most ? owner : `${ids.slice(0, most).join(",")} and ${ids.length - most} more`
}
