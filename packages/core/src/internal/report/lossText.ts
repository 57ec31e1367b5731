/** How a lock can be lost. */
export const lossReasons = ["Expired", "NotOwner", "RenewalFailed", "ClientClosed", "Released"] as const

/** How a lock was lost, and what to do about it; `renewal` says why the last renewal failed. */
export const lossText = (
  { reason, stalled }: { readonly reason: (typeof lossReasons)[number]; readonly stalled?: boolean | undefined },
  renewal: string
): string => {
  switch (reason) {
    case "Expired":
      return stalled === true
        ? "its lease ran out while the process was stopped or blocked"
        : "its lease ran out before it was released. Renew it (leave out leaseTime), or choose a longer lease"
    case "NotOwner":
      return "Redis no longer has it under this owner: it was force-released, deleted, evicted, or Redis lost its data"
    case "RenewalFailed":
      return `it was not renewed before its lease ran out: ${renewal}`
    case "ClientClosed":
      return "its client was closed while it was held, and released it"
    case "Released":
      return "its own holder has released it"
  }
}
