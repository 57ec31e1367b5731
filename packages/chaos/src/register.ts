/**
 * What sections write to: a set stored as a single value, so that a writer that has not read the latest version loses an element. It is kept in
 * PostgreSQL, by the statements of docs/fencing.md, or in a Redis; no faults are injected into either.
 */
import { postgresqlFast } from "@effect-redis-lock/bench/compared/servers/postgresql"
import { postgresqlOptions } from "@effect-redis-lock/bench/compared/systems/postgresql"
import { RedisServer } from "@effect-redis-lock/testing"
import { Effect, type Scope } from "effect"
import { Redis } from "ioredis"
import { Pool } from "pg"

export interface RegisterPlace {
  readonly system: "redis" | "postgresql"
  readonly port: number
}

/** Where a token comes with it, it refuses whoever has an older one than the newest that has read. */
export interface Register {
  /** Its elements; undefined where that is refused. */
  readonly read: (name: string, token?: string) => Promise<ReadonlyArray<string> | undefined>
  /** Replaces them; false where that is refused. */
  readonly write: (name: string, elements: ReadonlyArray<string>, token?: string) => Promise<boolean>
  readonly close: () => void
}

const readSql = `
INSERT INTO registers AS r VALUES ($1, coalesce($2::bigint, 0), '{}')
ON CONFLICT (name) DO UPDATE SET fence = coalesce($2, r.fence) WHERE $2 IS NULL OR r.fence <= $2
RETURNING r.elements`

const writeSql = "UPDATE registers SET elements = $2 WHERE name = $1 AND ($3::bigint IS NULL OR fence = $3)"

const inPostgresql = (port: number): Register => {
  const pool = new Pool(postgresqlOptions(port))
  return {
    read: async (name, token) => (await pool.query(readSql, [name, token])).rows[0]?.elements,
    write: async (name, elements, token) => (await pool.query(writeSql, [name, elements, token])).rowCount === 1,
    close: () => void pool.end()
  }
}

const readLua = `
if ARGV[1] ~= '' then
  if tonumber(ARGV[1]) < tonumber(redis.call('HGET', KEYS[1], 'fence') or 0) then return false end
  redis.call('HSET', KEYS[1], 'fence', ARGV[1])
end
return redis.call('HGET', KEYS[1], 'elements') or '[]'`

const writeLua = `
if ARGV[1] ~= '' and ARGV[1] ~= redis.call('HGET', KEYS[1], 'fence') then return 0 end
redis.call('HSET', KEYS[1], 'elements', ARGV[2])
return 1`

const inRedis = (port: number): Register => {
  const redis = new Redis({ port })
  return {
    read: async (name, token = "") => {
      const elements = (await redis.eval(readLua, 1, name, token)) as string | null
      return elements === null ? undefined : (JSON.parse(elements) as ReadonlyArray<string>)
    },
    write: async (name, elements, token = "") =>
      (await redis.eval(writeLua, 1, name, token, JSON.stringify(elements))) === 1,
    close: () => redis.disconnect()
  }
}

export const openRegister = ({ port, system }: RegisterPlace): Register =>
  system === "postgresql" ? inPostgresql(port) : inRedis(port)

/** Why there can be no PostgreSQL here. */
export const noPostgresql = postgresqlFast.missing

const startPostgresql = Effect.gen(function* () {
  const { place } = yield* Effect.acquireRelease(Effect.promise(postgresqlFast.start), ({ stop }) =>
    Effect.promise(stop)
  )
  yield* Effect.promise(async () => {
    const pool = new Pool(postgresqlOptions(place.port))
    await pool.query("CREATE TABLE registers (name text PRIMARY KEY, fence bigint NOT NULL, elements text[] NOT NULL)")
    await pool.end()
  })
  return place.port
})

/** Starts its server. */
export const startRegister = (
  system: RegisterPlace["system"]
): Effect.Effect<RegisterPlace, RedisServer.RedisServerError, Scope.Scope> =>
  Effect.map(
    system === "postgresql" ? startPostgresql : Effect.map(RedisServer.start(), ({ port }) => port),
    (port) => ({ system, port })
  )
