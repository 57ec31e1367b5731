/**
 * Everything that a URL may lead to: with and without TLS, as an ACL user with a password.
 */
import { RedisCluster, RedisSentinel, RedisServer } from "@effect-redis-lock/testing"
import { Effect, type Scope } from "effect"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { eventually } from "../eventually.ts"
import { bare } from "./bareRedis.ts"
import { onFreePort } from "./onFreePort.ts"

/** The ACL user that all deployments know. It must be percent-encoded in a URL, as must its password. */
export const user = "l@cks"
export const password = "s3cr3t/p@ss"

const aclUser = ["--user", user, "on", `>${password}`, "~*", "&*", "+@all"]

/** The URL of a deployment with this user and password. */
export type UrlAs = (user: string, password: string) => string

const file = (name: string) => fileURLToPath(new URL(`../../integration/tls/${name}.pem`, import.meta.url))
const certificate = file("certificate")
const key = file("key")
const tlsArgs = (port: number) => [
  ...["--tls-port", String(port), "--tls-cert-file", certificate, "--tls-key-file", key],
  ...["--tls-ca-cert-file", certificate, "--tls-auth-clients", "yes"]
]
const tlsFiles = `ca=${encodeURIComponent(certificate)}&cert=${certificate}&key=${key}`

const directory = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(tmpdir(), "deployment-"))),
  (path) => Effect.promise(() => rm(path, { recursive: true, force: true }))
)

const credentials = (user: string, password: string) => `${encodeURIComponent(user)}:${encodeURIComponent(password)}`

const hostsOf = (servers: ReadonlyArray<{ readonly host: string; readonly port: number }>) =>
  servers.map(({ host, port }) => `${host}:${port}`).join(",")

type Deployment = Effect.Effect<UrlAs, unknown, Scope.Scope>

const oneServer: Deployment = Effect.map(
  RedisServer.start({ args: aclUser }),
  ({ port }): UrlAs =>
    (...as) =>
      `redis://${credentials(...as)}@127.0.0.1:${port}/3`
)

const overTls: Deployment = Effect.gen(function* () {
  const { port } = yield* onFreePort((port) => [...aclUser, ...tlsArgs(port)])
  return (...as) => `rediss://${credentials(...as)}@localhost:${port}?${tlsFiles}`
})

const socket: Deployment = Effect.gen(function* () {
  const path = join(yield* directory, "redis.sock")
  yield* RedisServer.start({ args: [...aclUser, "--unixsocket", path] })
  return (...as) => `unix://${credentials(...as)}@${path}?db=3`
})

const cluster: Deployment = Effect.map(
  RedisCluster.start({ args: aclUser }),
  ({ nodes }): UrlAs =>
    (...as) =>
      `redis+cluster://${credentials(...as)}@${hostsOf(nodes)}`
)

/** A cluster of one node, as managed services offer it. */
const clusterOverTls: Deployment = Effect.gen(function* () {
  const args = ["--cluster-enabled", "yes", "--tls-cluster", "yes", "--cluster-announce-ip", "127.0.0.1"]
  const { port, server } = yield* onFreePort((port) => [...args, ...aclUser, ...tlsArgs(port)])
  const redis = yield* bare(server)
  yield* Effect.promise(() => redis.call("CLUSTER", "ADDSLOTSRANGE", 0, 16383))
  yield* eventually(
    "the node serves all slots",
    async () => (await redis.call("CLUSTER", "INFO")) as string,
    (info) => info.includes("cluster_state:ok")
  )
  return (...as) => `rediss+cluster://${credentials(...as)}@127.0.0.1:${port},localhost:${port}?${tlsFiles}`
})

const sentinel: Deployment = Effect.gen(function* () {
  const { name, sentinels } = yield* RedisSentinel.start({ sentinels: 2, replicas: 0, args: aclUser })
  // others than the master's
  for (const sentinel of sentinels) {
    const redis = yield* bare(sentinel)
    yield* Effect.promise(() => redis.call("ACL", "SETUSER", "w@tcher", "on", ">s3ntinel/p@ss", "&*", "+@all"))
    yield* Effect.promise(() => redis.call("ACL", "SETUSER", "default", "resetpass", ">s3ntinel"))
  }
  const query = `sentinelUsername=${encodeURIComponent("w@tcher")}&sentinelPassword=${encodeURIComponent("s3ntinel/p@ss")}`
  return (...as) => `redis+sentinel://${credentials(...as)}@${hostsOf(sentinels)}/${name}/3?${query}`
})

const sentinelOverTls: Deployment = Effect.gen(function* () {
  const { port: master } = yield* onFreePort((port) => [...aclUser, ...tlsArgs(port)])
  const path = join(yield* directory, "sentinel.conf")
  yield* Effect.promise(() => writeFile(path, `sentinel monitor locks 127.0.0.1 ${master} 1\n`))
  const { port } = yield* onFreePort((port) => [path, "--sentinel", "--tls-replication", "yes", ...tlsArgs(port)])
  return (...as) => `rediss+sentinel://${credentials(...as)}@localhost:${port}/locks?${tlsFiles}`
})

/** How to start each, for as long as the scope is open. */
export const deployments: ReadonlyArray<readonly [string, Deployment]> = [
  ["redis://", oneServer],
  ["rediss:// with a client certificate", overTls],
  ["unix://", socket],
  ["redis+cluster://", cluster],
  ["rediss+cluster:// with a client certificate", clusterOverTls],
  ["redis+sentinel:// with a password of the sentinels", sentinel],
  ["rediss+sentinel:// with a client certificate", sentinelOverTls]
]
