/**
 * Real servers whose clocks are wrong. A small library is compiled and preloaded for that: libfaketime does not get along
 * with the allocator of Redis.
 */
import { RedisServer } from "@effect-redis-lock/testing"
import { Effect } from "effect"
import { spawnSync } from "node:child_process"
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync, writeSync } from "node:fs"
import { endianness, tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { bare } from "../kit/server/bareRedis.ts"
import type { Place } from "./quorumSite.ts"

const compile = (source: string, library: string) =>
  spawnSync("cc", ["-shared", "-fPIC", "-O2", "-o", library, source], { encoding: "utf8" })

/** Why there can be no such servers here. */
export const impossible: string | undefined =
  process.platform !== "linux"
    ? "only on Linux can a library be preloaded"
    : spawnSync("cc", ["--version"]).error !== undefined
      ? "there is no C compiler (cc)"
      : undefined

/** A server whose clock can be stepped. */
export interface SkewedPlace extends Place {
  /** Sets its clock, so many seconds ahead of the machine's. */
  readonly setClock: (skewSeconds: number) => Effect.Effect<void>
}

const bytesOf = (seconds: number): Buffer => {
  const bytes = Buffer.alloc(4)
  if (endianness() === "LE") bytes.writeInt32LE(seconds)
  else bytes.writeInt32BE(seconds)
  return bytes
}

/** Overwrites in place: the server has mapped the file. */
const overwrite = (path: string, bytes: Buffer): void => {
  const file = openSync(path, "r+")
  writeSync(file, bytes, 0, bytes.length, 0)
  closeSync(file)
}

/** A server for each of these skews, in seconds. */
export const skewedServers = Effect.fnUntraced(function* (skews: ReadonlyArray<number>) {
  const directory = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "skewed-"))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
  )
  const library = join(directory, "skewedClock.so")
  const { status, stderr } = compile(fileURLToPath(new URL("fixtures/skewedClock.c", import.meta.url)), library)
  if (status !== 0) return yield* Effect.die(new Error(`cc failed:\n${stderr}`))
  return yield* Effect.forEach(
    skews,
    Effect.fnUntraced(function* (skew) {
      const binary = join(directory, `redis-server_${skew}`)
      const clock = join(directory, `clock_${skew}`)
      writeFileSync(clock, bytesOf(skew))
      const server = `"$(command -v redis-server || command -v valkey-server)"`
      writeFileSync(binary, `#!/bin/sh\nLD_PRELOAD=${library} CLOCK_SKEW=${clock} exec ${server} "$@"\n`, {
        mode: 0o755
      })
      const started = yield* RedisServer.start({ binary })
      const redis = yield* bare(started)
      const [seconds] = yield* Effect.promise(() => redis.time())
      const off = Number(seconds) - Date.now() / 1000 - skew
      if (Math.abs(off) > 30) return yield* Effect.die(new Error(`the clock is not ${skew} s ahead, but ${off} s more`))
      return {
        server: started,
        redis,
        setClock: (seconds) => Effect.sync(() => overwrite(clock, bytesOf(seconds)))
      } satisfies SkewedPlace
    }),
    { concurrency: "unbounded" }
  )
})
