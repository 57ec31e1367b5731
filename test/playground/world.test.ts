import { load } from "@effect-redis-lock/playground/Network"
import { type Fault, fromQuery, kinds, letters, type Run, toQuery } from "@effect-redis-lock/playground/faults"
import { type LockKind, World } from "@effect-redis-lock/playground/World"
import { randomOf } from "@effect-redis-lock/playground/VirtualTime"
import { assert, beforeAll, describe, it } from "@effect/vitest"

beforeAll(load)

const play = (lock: LockKind, run: Run, untilMillis: number, stepMillis = untilMillis) => {
  const world = new World(lock, run)
  for (let at = 0; at < untilMillis;) world.advanceTo((at = Math.min(untilMillis, at + stepMillis)))
  return world
}

/** All that a page shows of a world. */
const historyOf = ({ happenings, holders, ledger, members }: World) => ({
  happenings,
  holders,
  ledger: [ledger.accepted, ledger.balance, ledger.refused],
  states: letters.map((letter) => members[letter].states)
})

/** A minute in which something happens every second or two. */
const randomFaults = (seed: number): ReadonlyArray<Fault> => {
  const random = randomOf(seed)
  const pick = <A>(items: ReadonlyArray<A>): A => items[Math.floor(random() * items.length)]!
  const faults: Array<Fault> = []
  for (let at = 1000; at < 60_000; at += Math.floor(500 + random() * 2000)) {
    faults.push(random() < 0.08 ? { at, kind: "restart" } : { at, kind: pick(kinds), process: pick(letters) })
  }
  return faults
}

const paused = "seed=8&faults=3200-pause-A_8200-resume-A"

describe("the worlds of the playground", () => {
  it("A run depends on its seed and its faults alone, not on the steps in which time passes", () => {
    for (const lock of ["library", "set-nx"] as const) {
      for (const seed of [1, 8, 2026]) {
        const run: Run = { seed, faults: randomFaults(seed) }
        const history = historyOf(play(lock, run, 30_000))
        assert.isAbove(history.happenings.length, 5)
        assert.deepStrictEqual(historyOf(play(lock, run, 30_000, 7)), history)
        assert.deepStrictEqual(historyOf(play(lock, fromQuery(toQuery(run)), 30_000, 333)), history)
      }
    }
    assert.notDeepEqual(
      historyOf(play("library", fromQuery("seed=1"), 30_000)),
      historyOf(play("library", fromQuery("seed=2"), 30_000))
    )
  })

  it("A fault that is added while the run is under way changes it as it does in the run's address", () => {
    const faults: Array<Fault> = []
    const world = new World("library", { seed: 8, faults })
    world.advanceTo(3200)
    faults.push({ at: 3200, kind: "pause", process: "A" })
    world.advanceTo(8200)
    faults.push({ at: 8200, kind: "resume", process: "A" })
    world.advanceTo(20_000)
    assert.deepStrictEqual(historyOf(world), historyOf(play("library", fromQuery(paused), 20_000)))
  })

  it("SET NX loses deposits in every run that the page offers, the library none", () => {
    for (const query of [paused, "seed=1", "seed=8&faults=3200-restart"]) {
      const naive = play("set-nx", fromQuery(query), 12_000)
      assert.isAbove(naive.ledger.lost, 0, query)
      assert.isTrue(naive.happenings.some(({ kind }) => kind === "overwrote"))
      assert.strictEqual(play("library", fromQuery(query), 12_000).ledger.lost, 0, query)
    }
  })

  it("Under random faults SET NX loses deposits, the library and its tokens never one, and everybody goes on", () => {
    let naive = 0
    const end = letters.flatMap((process) =>
      (["resume", "mend", "start"] as const).map((kind): Fault => ({ at: 60_000, kind, process }))
    )
    for (let seed = 1; seed <= 8; seed++) {
      const run: Run = { seed, faults: [...randomFaults(seed), ...end] }
      naive += play("set-nx", run, 60_000).ledger.lost
      const world = play("library", run, 60_000)
      assert.strictEqual(world.ledger.lost, 0, `seed ${seed}`)
      const before = world.ledger.accepted
      // the faults are over: all three work again
      world.advanceTo(120_000)
      assert.isAbove(world.ledger.accepted, before + 20, `seed ${seed}`)
    }
    assert.isAbove(naive, 20)
  })

  it("A process that was paused for longer than its lease is interrupted before it writes", () => {
    const { happenings, ledger } = play("library", fromQuery(paused), 12_000)
    assert.deepStrictEqual(
      happenings.filter(({ at }) => at >= 8200).map(({ kind, process }) => `${process} ${kind}`),
      ["A resume", "A lost"]
    )
    assert.strictEqual(ledger.refused, 0)
  })

  it("The lock of a process that is killed inside is free for the others when its lease ends", () => {
    const { holders, members } = play("library", fromQuery("seed=8&faults=3200-kill-A"), 12_000)
    const last = holders.findLast(({ from, what }) => what === "A" && from <= 3200)!
    assert.isAbove(last.to!, 3200)
    assert.isBelow(last.to!, 3200 + 3000)
    const next = holders.find(({ from }) => from >= last.to!)!
    assert.isBelow(next.from - last.to!, 1300)
    assert.isFalse(members.A.states.some(({ from }) => from > 3200))
  })

  it("A holder that is cut off from Redis is interrupted before its lease ends, and goes on when it is connected again", () => {
    // with seed 1 the first section of A lasts five seconds
    const { happenings, members } = play("library", fromQuery("seed=1&faults=2000-cut-A_9000-mend-A"), 20_000)
    const lost = happenings.find(({ kind }) => kind === "lost")!
    assert.isAbove(lost.at, 2000)
    assert.isBelow(lost.at, 2000 + 3000)
    assert.isTrue(members.A.states.some(({ from, what }) => what === "inside" && from > 9000))
  })

  it("An address says all of a run, and what makes no sense in it is left out", () => {
    const run: Run = {
      seed: 7,
      faults: [
        { at: 1200, kind: "pause", process: "A" },
        { at: 1200, kind: "restart" },
        { at: 5200, kind: "resume", process: "A" }
      ]
    }
    assert.strictEqual(toQuery(run), "seed=7&faults=1200-pause-A_1200-restart_5200-resume-A")
    assert.deepStrictEqual(fromQuery(toQuery(run)), run)
    assert.deepStrictEqual(
      fromQuery("?seed=-3&faults=9-fly-A_x-pause-A_9-pause-D_9-cut_1e9-restart_8-cut-B_3-kill-C&other"),
      {
        seed: 1,
        faults: [
          { at: 3, kind: "kill", process: "C" },
          { at: 8, kind: "cut", process: "B" }
        ]
      }
    )
  })
})
