/**
 * Tests whose bodies are generators: what they do, step by step. What a test builds is closed at its end.
 */
import { it, type Vitest } from "@effect/vitest"
import { Effect, type Layer, References, type Scope } from "effect"
import { RedisLock } from "effect-redis-lock"

/** Declares a test. */
export interface Test<R> {
  (title: string, body: () => Effect.fn.Return<unknown, unknown, R | Scope.Scope>, timeout?: number): void
}

/** Tests that run as these do: `it.effect` of a layer, for example. */
export const testsOf =
  <R>(run: Vitest.Test<R | Scope.Scope>): Test<R> =>
  (title, body, timeout) =>
    run(title, () => Effect.gen(body), timeout)

/** Tests under titles that begin with what, or where, is tested. */
export const titled =
  <R>(prefix: string, test: Test<R>): Test<R> =>
  (title, body, timeout) =>
    test(`${prefix}: ${title}`, body, timeout)

/** A test in virtual time. */
export const test = testsOf<never>(it.effect)

/** A test in real time. */
export const testLive = testsOf<never>(it.live)

/** The same, of which nothing is logged but errors. */
export const testLiveQuietly = testsOf<never>((title, self, timeout) =>
  it.live(title, (context) => Effect.provideService(self(context), References.MinimumLogLevel, "Error"), timeout)
)

/** Tests in virtual time that all run through something, in a scope within: with a service, say. */
export const testsThrough =
  <R>(around: (self: Effect.Effect<unknown, unknown, R>) => Effect.Effect<unknown, unknown, Scope.Scope>): Test<R> =>
  (title, body, timeout) =>
    it.effect(title, () => around(Effect.scoped(Effect.gen(body)) as Effect.Effect<unknown, unknown, R>), timeout)

/** A test in virtual time whose warnings it provokes: nothing is logged. */
export const testQuietly = testsThrough<never>(Effect.provideService(References.MinimumLogLevel, "None"))

/** A test in virtual time with a client of a store in memory. */
export const testInMemory = testsThrough<RedisLock.RedisLock>(Effect.provide(RedisLock.layerMemory))

/** Tests each of which builds a layer of its own; by default in real time. */
export const testsWith = <R, E>(layer: Layer.Layer<R, E>, run: Vitest.Test<Scope.Scope> = it.live): Test<R> =>
  testsOf<R>((title, self, timeout) =>
    run(title, (context) => Effect.provide(Effect.scoped(self(context)), layer), timeout)
  )

/** Suites of tests that share a layer. */
export const suitesOn =
  <R, E>(layer: Layer.Layer<R, E>, options?: { readonly excludeTestServices?: boolean }) =>
  (title: string, tests: (test: Test<R>) => void): void =>
    it.layer(layer, options)(title, (it) => tests(testsOf(it.effect)))
