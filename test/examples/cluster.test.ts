/**
 * examples/cluster, run as a user runs it.
 */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { freshName } from "../kit/names.ts"
import { bare } from "../kit/server/bareRedis.ts"
import { redisUrl } from "../kit/server/redisUrl.ts"
import { runExample } from "./programs.ts"

it.live("The cluster's example moves a cart to another runner when its own is killed, and ends by itself", () =>
  Effect.gen(function* () {
    const prefix = freshName("example")
    const output = yield* runExample("cluster/dist/main.js", {
      CLUSTER_PREFIX: prefix,
      CLUSTER_PORT: String(20_000 + Math.floor(Math.random() * 10_000))
    })
    const [, first] = /the cart of alice is at runner (\d+), with \d+ articles/.exec(output) ?? []
    const [, next] = /the cart of alice is at runner (\d+), [\d.]+ seconds later/.exec(output) ?? []
    assert.isDefined(first, output)
    assert.isDefined(next, output)
    assert.notStrictEqual(first, next)
    assert.match(output, new RegExp(`runner ${first} is killed`))
    assert.match(output, /the singleton runs here/)
    const redis = yield* bare({ url: redisUrl })
    yield* Effect.promise(() => redis.del(`{${prefix}}:runners`, `{${prefix}}:shards`))
  }).pipe(Effect.scoped)
)
