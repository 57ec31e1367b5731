/**
 * What is read from INFO: what is wrong with a server, with the remedy.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { assert, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { problemOf } from "../../packages/ioredis/dist/internal/serverWarnings.js"
import { test } from "../kit/test.ts"

const at = 1_795_380_201_074
const info = (...lines: ReadonlyArray<string>) => ({
  text: ["# Server", ...lines, ""].join("\r\n"),
  sentAt: at,
  receivedAt: at + 300
})
const unsaved = ["rdb_last_bgsave_time_sec:-1", "rdb_saves:0", "aof_enabled:0"]
const clock = (millis: number) => `server_time_usec:${(at + millis) * 1000}`

it.each([
  ["eviction", ["maxmemory:100", "maxmemory_policy:allkeys-lru"], "(maxmemory-policy allkeys-lru)"],
  ["eviction", ["maxmemory_policy:volatile-ttl"], "noeviction"],
  ["persistence", unsaved, "leases of 2m"],
  ["persistence", ["aof_enabled:0", "rdb_last_bgsave_time_sec:-1"], "Turn on appendonly"],
  ["replicas", ["role:master", "connected_slaves:2"], "replicas (2)"],
  ["clock", [clock(-1001)], "1.0 s behind"],
  ["clock", [clock(3301)], "3.0 s ahead of"]
] as const)("A server's INFO tells of a problem: %s, by %j", (kind, lines, words) => {
  assert.include(problemOf(kind, info(...lines), 120_000), words)
})

it.each([
  ["eviction", ["maxmemory:0", "maxmemory_policy:allkeys-lru"]],
  ["eviction", ["maxmemory:100", "maxmemory_policy:noeviction"]],
  ["persistence", ["aof_enabled:1", "rdb_last_bgsave_time_sec:-1"]],
  ["persistence", ["rdb_last_bgsave_time_sec:0", "rdb_saves:0", "aof_enabled:0"]],
  ["persistence", ["rdb_last_bgsave_time_sec:-1", "rdb_saves:3", "aof_enabled:0"]],
  ["replicas", ["role:master", "connected_slaves:0"]],
  ["replicas", ["role:slave", "connected_slaves:1"]],
  ["clock", [clock(-999)]],
  ["clock", [clock(1299)]],
  ["eviction", []],
  ["persistence", []],
  ["replicas", []],
  ["clock", []]
] as const)(
  "A server's INFO that shows no problem, or does not tell, is no reason to warn: %s, by %j",
  (kind, lines) => {
    assert.isUndefined(problemOf(kind, info(...lines), 120_000))
  }
)

test("An unknown kind of warning is refused", function* () {
  const warnings = ["evictions"] as never
  for (const layer of [
    IoRedis.layer({ warnings }),
    IoRedis.layerCluster({ nodes: ["redis://h"], warnings }),
    IoRedis.layerSentinel({ sentinels: ["redis://h"], warnings: "eviction" as never })
  ]) {
    const error = yield* Effect.flip(Effect.scoped(Layer.build(layer)))
    assert.deepInclude(error, { _tag: "InvalidLockOptions", option: "warnings" })
  }
})
