import { assert, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Lock, RedisLock } from "effect-redis-lock"
import { HttpClient, HttpClientResponse } from "effect/http"
import { Otlp } from "effect/observability"
import { withOwnMetrics } from "../kit/metrics.ts"

interface Exported {
  readonly resourceMetrics: ReadonlyArray<{
    readonly scopeMetrics: ReadonlyArray<{ readonly metrics: ReadonlyArray<{ name: string; unit: string }> }>
  }>
}

it.live("Over OTLP durations have the unit s, and what is counted is named, so that no gauge becomes a ratio", () =>
  Effect.gen(function* () {
    const units = new Map<string, string>()
    const collector = HttpClient.make((request, url) =>
      Effect.sync(() => {
        if (url.pathname === "/v1/metrics" && request.body._tag === "Uint8Array") {
          const { resourceMetrics } = JSON.parse(new TextDecoder().decode(request.body.body)) as Exported
          for (const { name, unit } of resourceMetrics[0]!.scopeMetrics[0]!.metrics) units.set(name, unit)
        }
        return HttpClientResponse.fromWeb(request, new Response())
      })
    )
    const telemetry = Otlp.layerJson({ baseUrl: "http://localhost:4318", resource: { serviceName: "test" } }).pipe(
      Layer.provide(Layer.succeed(HttpClient.HttpClient, collector))
    )
    yield* Effect.void.pipe(Lock.withLock("a"), Effect.provide(RedisLock.layerMemory), Effect.provide(telemetry))
    assert.deepInclude(Object.fromEntries(units), {
      "redis_lock.wait.duration": "s",
      "redis_lock.hold.duration": "s",
      "redis_lock.held": "{lock}",
      "redis_lock.waiting": "{acquisition}",
      "redis_lock.acquisitions": "{acquisition}"
    })
  }).pipe(withOwnMetrics)
)
