/**
 * A real server whose clock is wrong. A small library is compiled and preloaded for that: libfaketime does not get along
 * with the allocator of Redis.
 */
import { RedisServer } from "@effect-redis-lock/testing"
import { Effect } from "effect"
import { spawnSync } from "node:child_process"
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync, writeSync } from "node:fs"
import { endianness, tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

const compile = (source: string, library: string) =>
  spawnSync("cc", ["-shared", "-fPIC", "-O2", "-o", library, source], { encoding: "utf8" })

/** Why there can be no such server here. */
export const impossible: string | undefined =
  process.platform !== "linux"
    ? "only on Linux can a library be preloaded"
    : spawnSync("cc", ["--version"]).error !== undefined
      ? "there is no C compiler (cc)"
      : undefined

const bytesOf = (millis: number): Buffer => {
  const bytes = Buffer.alloc(4)
  if (endianness() === "LE") bytes.writeInt32LE(millis)
  else bytes.writeInt32BE(millis)
  return bytes
}

/** Overwrites in place: the server has mapped the file. */
const overwrite = (path: string, bytes: Buffer): void => {
  const file = openSync(path, "r+")
  writeSync(file, bytes, 0, bytes.length, 0)
  closeSync(file)
}

/** Starts one whose clock is so many milliseconds ahead of the machine's, and can be set anew. */
export const startSkewed = Effect.fnUntraced(function* (skewMillis: number, args: ReadonlyArray<string> = []) {
  const directory = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "skewed-"))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
  )
  const library = join(directory, "skewedClock.so")
  const { status, stderr } = compile(fileURLToPath(new URL("../skewedClock.c", import.meta.url)), library)
  if (status !== 0) return yield* Effect.die(new Error(`cc failed:\n${stderr}`))
  const binary = join(directory, "redis-server")
  const clock = join(directory, "clock")
  writeFileSync(clock, bytesOf(skewMillis))
  const program = `"$(command -v redis-server || command -v valkey-server)"`
  writeFileSync(binary, `#!/bin/sh\nLD_PRELOAD=${library} CLOCK_SKEW=${clock} exec ${program} "$@"\n`, { mode: 0o755 })
  const server = yield* RedisServer.start({ binary, args })
  return { server, setClock: (millis: number) => Effect.sync(() => overwrite(clock, bytesOf(millis))) }
})
