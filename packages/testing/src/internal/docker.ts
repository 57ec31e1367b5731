import * as Effect from "effect/Effect"
import { existsSync } from "node:fs"
import { get } from "node:http"
import { homedir } from "node:os"
import { join } from "node:path"

const PING_TIMEOUT_MILLIS = 3000

/** The sockets where Testcontainers looks for an engine, in its order. */
const sockets = (): ReadonlyArray<string> =>
  process.platform === "win32"
    ? ["//./pipe/docker_engine"]
    : [
        "/var/run/docker.sock",
        ...(process.env.XDG_RUNTIME_DIR === undefined ? [] : [join(process.env.XDG_RUNTIME_DIR, "docker.sock")]),
        join(homedir(), ".docker", "run", "docker.sock"),
        join(homedir(), ".docker", "desktop", "docker.sock"),
        `/run/user/${process.getuid?.() ?? 0}/docker.sock`
      ].filter((path) => existsSync(path))

const endpoint = (host: string) => {
  try {
    const url = new URL(host)
    if (url.hostname === "") return { socketPath: url.pathname }
    return { host: url.hostname, port: Number(url.port) || 2375 }
  } catch {
    return undefined
  }
}

/** Any answer will do: one that speaks TLS answers plain HTTP with 400. */
const answers = (endpoint: { readonly socketPath: string } | { readonly host: string; readonly port: number }) =>
  Effect.callback<boolean>((resume) => {
    const request = get({ ...endpoint, path: "/_ping", agent: false, timeout: PING_TIMEOUT_MILLIS }, (response) => {
      response.destroy()
      resume(Effect.succeed(true))
    })
    request.on("timeout", () => request.destroy())
    request.on("error", () => resume(Effect.succeed(false)))
    return Effect.sync(() => request.destroy())
  })

/**
 * Whether Testcontainers is worth trying at all. Loading it takes most of a second, and its own search may hang, so it is
 * not loaded if no engine answers.
 */
export const mayHaveDocker: Effect.Effect<boolean> = Effect.suspend(() => {
  // its own configuration file may name any engine
  if (existsSync(join(homedir(), ".testcontainers.properties"))) return Effect.succeed(true)
  const named = process.env.DOCKER_HOST === undefined ? undefined : endpoint(process.env.DOCKER_HOST)
  const candidates = [...(named === undefined ? [] : [named]), ...sockets().map((socketPath) => ({ socketPath }))]
  return Effect.map(Effect.forEach(candidates, answers, { concurrency: "unbounded" }), (answers) =>
    answers.includes(true)
  )
})
