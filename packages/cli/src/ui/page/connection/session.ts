/**
 * Requests to the server that the page comes from, with the token that the user has given.
 */

// of this tab and this port alone; a cookie would be sent to every server of this machine
const stored = "redis-lock token"

/** Takes the token out of the address `#token=...`, where neither history nor screenshots then show it. */
export const takeTokenFromAddress = (): void => {
  const given = /^#token=(.+)$/.exec(location.hash)?.[1]
  if (given === undefined) return
  history.replaceState(null, "", `${location.pathname}#/`)
  let token = given
  try {
    token = decodeURIComponent(given)
  } catch {
    // not encoded
  }
  setToken(token)
}

/** Without the spaces that were copied with it. */
export const setToken = (token: string): void => sessionStorage.setItem(stored, token.trim())

export const hasToken = (): boolean => sessionStorage.getItem(stored) !== null

export const request = (path: string, init: RequestInit = {}): Promise<Response> => {
  const headers = new Headers(init.headers)
  const token = sessionStorage.getItem(stored)
  // no token has other characters, nor has a header: without one the server asks for it
  if (token !== null && /^[!-~]+$/.test(token)) headers.set("authorization", `Bearer ${token}`)
  return fetch(path, { ...init, headers, cache: "no-store", credentials: "omit" })
}
