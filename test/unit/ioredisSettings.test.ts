import { assert, it } from "@effect/vitest"
import { fastPath } from "../../packages/ioredis/dist/internal/fast/fastPath.js"
import { settingsOf } from "../../packages/ioredis/dist/internal/options/settings.js"

it("A server that loads its data is asked again after 100 ms, or after what the application says", () => {
  const settings = (maxLoadingRetryTime?: number) =>
    settingsOf(fastPath, maxLoadingRetryTime === undefined ? {} : { maxLoadingRetryTime }, 1000)
  assert.strictEqual(settings().maxLoadingRetryTime, 100)
  assert.strictEqual(settings(300).maxLoadingRetryTime, 300)
})

it("ioredis is given the time to connect that the driver's option says, or what the application says to ioredis", () => {
  const settings = (ioredis: { readonly connectTimeout?: number }) => settingsOf(fastPath, ioredis, 7000)
  assert.strictEqual(settings({}).connectTimeout, 7000)
  assert.strictEqual(settings({ connectTimeout: 300 }).connectTimeout, 300)
})
