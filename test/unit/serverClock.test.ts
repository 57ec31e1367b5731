/**
 * What a client knows of a server's clock, from replies that tell it.
 */
import { assert, it } from "@effect/vitest"
import { ServerClock } from "../../packages/core/dist/internal/store/commands.js"

/** Server time less ours, microseconds. */
const ahead = 1_700_000_000_000_000

/** The server read its clock at `millis` of ours, while the command was on its way from `sentAt` to `receivedAt`. */
const learn = (clock: ServerClock, sentAt: number, millis: number, receivedAt: number, offset = ahead) =>
  clock.learn(offset + millis * 1000, sentAt, receivedAt)

it("A server's clock is unknown before any reply has told it", () => {
  assert.strictEqual(new ServerClock().microsAt(1000), Number.NEGATIVE_INFINITY)
})

it("A server's clock is never estimated ahead of what it is, however long a command or its reply takes", () => {
  const clock = new ServerClock()
  for (const [sentAt, at, receivedAt] of [
    [0, 900, 1000],
    [2000, 2001, 3000],
    [4000, 4500, 5000],
    [6000, 6000, 6001]
  ] as const) {
    learn(clock, sentAt, at, receivedAt)
    assert.isAtMost(clock.microsAt(receivedAt), ahead + receivedAt * 1000)
  }
})

it("A server's clock is known better by every quick reply, and no worse by a slow one", () => {
  const clock = new ServerClock()
  learn(clock, 0, 10, 1000)
  assert.isAtMost(clock.microsAt(1000), ahead + 10_000)
  learn(clock, 1000, 1001, 1002)
  const known = clock.microsAt(1002) - (ahead + 1_002_000)
  assert.isAtLeast(known, -1000)
  learn(clock, 1002, 1010, 2000)
  assert.isAtLeast(clock.microsAt(2000) - (ahead + 2_000_000), -2000)
})

it("A server's clock is learnt anew when it was set back or forwards by more than a reply can hide", () => {
  for (const step of [-3600, -10, 10, 3600]) {
    const clock = new ServerClock()
    learn(clock, 0, 1, 2)
    learn(clock, 100, 101, 102, ahead + step * 1_000_000)
    const error = clock.microsAt(102) - (ahead + step * 1_000_000 + 102_000)
    assert.isAtMost(error, 0)
    assert.isAtLeast(error, -2000)
  }
})

it("A server's clock is trusted less and less while nothing is heard of it, as clocks drift apart", () => {
  const clock = new ServerClock()
  learn(clock, 0, 0, 0)
  const hour = 3_600_000
  const slow = ahead + hour * 1000 * (1 - 500e-6)
  assert.isBelow(clock.microsAt(hour), slow)
})

it("A server's clock is known at the latest too, and no reply that took its time makes that later", () => {
  const clock = new ServerClock()
  assert.strictEqual(clock.latestMicrosAt(1000), Number.POSITIVE_INFINITY)
  for (const [sentAt, at, receivedAt] of [
    [0, 10, 11],
    [1000, 1900, 2000]
  ] as const) {
    learn(clock, sentAt, at, receivedAt)
    const error = clock.latestMicrosAt(receivedAt) - (ahead + receivedAt * 1000)
    assert.isAtLeast(error, 0)
    assert.isAtMost(error, 12_000)
  }
})

it("A server's clock at the latest keeps pace with ours while nothing is heard of it", () => {
  const clock = new ServerClock()
  learn(clock, 0, 0, 0)
  const hour = 3_600_000
  assert.strictEqual(clock.latestMicrosAt(hour), ahead + hour * 1000)
})
