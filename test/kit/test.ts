/**
 * Tests as what they do, step by step.
 */
import { it, type Vitest } from "@effect/vitest"
import { Effect, References, type Scope } from "effect"
import { RedisLock } from "effect-redis-lock"

type Steps<R> = () => Generator<Effect.Effect<unknown, unknown, R>, unknown, never>

type Declare<R> = (title: string, steps: Steps<R | Scope.Scope>, timeout?: number) => void

/** A test under virtual time, in a scope of its own. */
export const test: Declare<never> = (title, steps, timeout) => it.effect(title, () => Effect.gen(steps), timeout)

/** The same in real time. */
export const testLive: Declare<never> = (title, steps, timeout) => it.live(title, () => Effect.gen(steps), timeout)

/** Tests that all run through something, in a scope within: with a service, say. */
export const testThrough =
  <R>(around: (self: Effect.Effect<unknown, unknown, R>) => Effect.Effect<unknown, unknown, Scope.Scope>): Declare<R> =>
  (title, steps, timeout) =>
    it.effect(title, () => around(Effect.scoped(Effect.gen(steps)) as Effect.Effect<unknown, unknown, R>), timeout)

/** Tests with what `it.layer` provides, perhaps through something: with a client of its own, say. */
export const testOf =
  <R, R2 = R>(
    it: Pick<Vitest.MethodsNonLive<R>, "effect">,
    around: (self: Effect.Effect<unknown, unknown, R2>) => Effect.Effect<unknown, unknown, R | Scope.Scope> = (self) =>
      self as never
  ): Declare<R2> =>
  (title, steps, timeout) =>
    it.effect(title, () => around(Effect.gen(steps) as Effect.Effect<unknown, unknown, R2>), timeout)

/** Whose warnings are what the test provokes. */
export const testQuietly = testThrough<never>(Effect.provideService(References.MinimumLogLevel, "None"))

/** With a client of a store in memory. */
export const testInMemory = testThrough<RedisLock.RedisLock>(Effect.provide(RedisLock.layerMemory))
