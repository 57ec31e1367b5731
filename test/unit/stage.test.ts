/**
 * What a line does next: every event in every stage.
 */
import { assert, it } from "@effect/vitest"
import { asking, asleep, due, type Event, next, type Stage } from "../../packages/core/dist/internal/wait/stage.js"

const streak = { count: 3, since: 5 }
const grant = { owner: "a:1", token: 7, serverMicros: 8, leaseMillis: 9 }
const now = 100
const until = 200

const stages: Readonly<Record<string, Stage>> = {
  due,
  "due, left to us": { _tag: "Due", streak },
  asking,
  "asking, changed": { ...asking, hasChanged: true },
  "asking, left to others": { ...asking, quietUntil: 150 },
  "asking, handed over": { ...asking, hasChanged: true, grant },
  "handed over": { _tag: "HandedOver", grant },
  asleep: asleep(now),
  "asleep for longer": asleep(now + 1),
  quiet: asleep(150, true)
}

const events: Readonly<Record<string, Event>> = {
  changed: { _tag: "Changed" },
  kept: { _tag: "Kept", grant: undefined },
  "handed over": { _tag: "Kept", grant },
  "left to us": { _tag: "LeftToUs", streak },
  "left to others": { _tag: "LeftToOthers", until: 150 },
  asked: { _tag: "Asked" },
  answered: { _tag: "Answered", until, now },
  granted: { _tag: "Granted", until, excludes: true },
  "granted, and shared": { _tag: "Granted", until, excludes: false },
  "taken back": { _tag: "TakenBack", until },
  paused: { _tag: "Paused", until },
  rang: { _tag: "Rang", now }
}

/** What follows, by stage and event; what is not here stays as it is. */
const changes: Readonly<Record<string, Readonly<Record<string, Stage>>>> = {
  due: {
    "left to us": { _tag: "Due", streak },
    "handed over": { _tag: "HandedOver", grant },
    "left to others": asleep(150, true),
    asked: asking
  },
  "due, left to us": {
    "handed over": { _tag: "HandedOver", grant },
    asked: { ...asking, streak }
  },
  asking: {
    changed: { ...asking, hasChanged: true },
    kept: { ...asking, hasChanged: true },
    "handed over": { ...asking, hasChanged: true, grant },
    "left to us": { ...asking, hasChanged: true, streak },
    "left to others": { ...asking, quietUntil: 150 },
    answered: asleep(until),
    granted: asleep(until),
    "granted, and shared": asleep(until),
    "taken back": asleep(until)
  },
  "asking, changed": {
    asked: asking,
    "handed over": { ...asking, hasChanged: true, grant },
    "left to us": { ...asking, hasChanged: true, streak },
    "left to others": { ...asking, hasChanged: true, quietUntil: 150 },
    answered: due,
    granted: asleep(until),
    "granted, and shared": due,
    "taken back": asleep(until)
  },
  "asking, left to others": {
    asked: asking,
    changed: { ...asking, hasChanged: true, quietUntil: 150 },
    kept: { ...asking, hasChanged: true },
    "handed over": { ...asking, hasChanged: true, grant },
    "left to us": { ...asking, hasChanged: true, streak },
    answered: asleep(150, true),
    granted: asleep(until),
    "granted, and shared": asleep(until),
    "taken back": asleep(until)
  },
  "asking, handed over": {
    asked: asking,
    kept: { ...asking, hasChanged: true },
    "left to us": { ...asking, hasChanged: true, grant, streak },
    "left to others": { ...asking, hasChanged: true, grant, quietUntil: 150 },
    answered: { _tag: "HandedOver", grant },
    granted: asleep(until),
    "granted, and shared": due,
    "taken back": asleep(until)
  },
  "handed over": {
    "left to us": { _tag: "Due", streak },
    asked: asking,
    granted: asleep(until),
    "granted, and shared": due
  },
  asleep: {
    changed: due,
    kept: due,
    "handed over": { _tag: "HandedOver", grant },
    "left to us": { _tag: "Due", streak },
    "left to others": asleep(150, true),
    asked: asking,
    granted: asleep(until),
    "granted, and shared": asleep(until),
    paused: asleep(until),
    rang: due
  },
  "asleep for longer": {
    changed: due,
    kept: due,
    "handed over": { _tag: "HandedOver", grant },
    "left to us": { _tag: "Due", streak },
    "left to others": asleep(150, true),
    asked: asking,
    granted: asleep(until),
    "granted, and shared": asleep(until),
    paused: asleep(until)
  },
  quiet: {
    kept: due,
    "handed over": { _tag: "HandedOver", grant },
    "left to us": { _tag: "Due", streak },
    asked: asking,
    granted: asleep(until),
    "granted, and shared": asleep(until)
  }
}

for (const [name, stage] of Object.entries(stages)) {
  for (const [what, event] of Object.entries(events)) {
    it(`A line that is ${name}, on the event "${what}"`, () => {
      assert.deepStrictEqual(next(stage, event), changes[name]![what] ?? stage)
    })
  }
}

it("Whatever has happened, a line that somebody waits in asks again: it never sleeps without an end", () => {
  let seed = 1
  const random = (below: number) => (seed = (seed * 48_271) % 2_147_483_647) % below
  const all = Object.values(events)
  let stage: Stage = due
  for (let step = 0; step < 100_000; step++) {
    stage = next(stage, all[random(all.length)]!)
    if (stage._tag === "Asking") assert.notStrictEqual(next(stage, { _tag: "Answered", until, now })._tag, "Asking")
    else if (stage._tag === "Asleep") {
      assert.isBelow(stage.until, Number.POSITIVE_INFINITY)
      assert.strictEqual(next(stage, { _tag: "Rang", now: stage.until })._tag, "Due")
    }
  }
})
