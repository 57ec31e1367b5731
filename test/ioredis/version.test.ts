/**
 * That the tests of this run, and the driver that they test, stand on the version of ioredis that they are meant for.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { assert, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Lock, RedisLock } from "effect-redis-lock"
import * as ioredis from "ioredis"
import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { notingPaths } from "../kit/commandPath.ts"
import { redisUrl } from "../kit/server/redisUrl.ts"

const require = createRequire(import.meta.url)

/** The names under which package.json has them. */
const versions: Readonly<Record<string, string>> = JSON.parse(
  readFileSync(new URL("../package.json", import.meta.url), "utf8")
).devDependencies

const name = process.env["IOREDIS_OF_THIS_RUN"]!

it("the tests load the version of ioredis that package.json names", () => {
  const { version } = require(`${name}/package.json`) as { readonly version: string }
  assert.strictEqual(versions[name], `npm:ioredis@${version}`)
  assert.strictEqual(ioredis.Redis, (require(name) as typeof ioredis).Redis)
})

it.live("the driver sends its scripts through that very ioredis, on the plain path", () =>
  Effect.gen(function* () {
    const paths = yield* notingPaths
    const locks = Layer.provide(RedisLock.layer(), IoRedis.layer({ url: redisUrl }))
    yield* Effect.provide(Lock.withLock(Effect.void, `version:${crypto.randomUUID()}`), locks)
    assert.deepStrictEqual([...paths], ["plain"])
  }).pipe(Effect.scoped)
)
