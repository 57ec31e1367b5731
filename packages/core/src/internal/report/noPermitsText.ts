interface Permits {
  readonly wanted: number
  readonly available: number | undefined
  readonly exists?: boolean | undefined
}

/** The message of a wait in which a semaphore did not have enough permits. */
export const noPermitsText = (semaphore: string, waited: string, { available, exists, wanted }: Permits): string =>
  exists === false
    ? `Semaphore "${semaphore}" did not exist within ${waited}. ` +
      `Create it with trySetPermits, or give make the number of its permits.`
    : `Semaphore "${semaphore}" did not have ${wanted} free permit${wanted === 1 ? "" : "s"} within ${waited}` +
      (available === undefined ? "." : `; it had ${available}.`)
