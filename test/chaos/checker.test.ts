/**
 * The checker of histories, on some that are known to be right or wrong.
 */
import { buildChecker, checkHistory } from "@effect-redis-lock/chaos/check"
import { type Operation, writeHistory } from "@effect-redis-lock/chaos/history"
import { mkdtempSync, rmSync, writeSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, describe, it } from "vitest"

interface Held {
  readonly hold: string
  readonly from: readonly [call: number, entered: number]
  readonly to?: readonly [call: number, left?: number]
  readonly token?: number
  readonly shared?: true
  /** Writes into the register, each from its call to its reply. */
  readonly writes?: ReadonlyArray<readonly [call: number, replied: number, outcome: "ok" | "refused"]>
}

const history = (permits: number, ...held: ReadonlyArray<Held>): ReadonlyArray<Operation> => [
  { op: "lock", lock: "a", permits },
  ...held.flatMap(({ from, hold, shared, to, token, writes = [] }): Array<Operation> => {
    const about = { lock: "a", process: 1, hold, token: token === undefined ? undefined : String(token), shared }
    return [
      { op: "acquire", ...about, call: from[0], return: from[1], outcome: "ok" },
      ...(to === undefined ? [] : [{ op: "release", ...about, call: to[0], return: to[1], outcome: "ok" } as const]),
      ...writes.map(([call, replied, outcome]) => ({ op: "write", ...about, call, return: replied, outcome }) as const)
    ]
  })
]

const missing = await buildChecker()
if (missing !== undefined) writeSync(2, `\nThe checker's tests are skipped: ${missing}\n`)

describe.skipIf(missing !== undefined)("the checker", () => {
  const directory = mkdtempSync(join(tmpdir(), "checker-"))
  afterAll(() => rmSync(directory, { recursive: true }))
  const check = async (operations: ReadonlyArray<Operation>) => {
    const file = join(directory, "history.jsonl")
    writeHistory(file, operations)
    return checkHistory(file)
  }
  const anomalies = async (...of: Parameters<typeof history>) =>
    Object.fromEntries((await check(history(...of))).map(({ anomalies, model }) => [model, anomalies]))

  it("The checker accepts holders that follow each other, as far as anybody knows", async () => {
    assert.deepStrictEqual(
      await anomalies(1, { hold: "1", from: [0, 10], to: [20, 25] }, { hold: "2", from: [5, 24], to: [30, 31] }),
      { mutex: 0 }
    )
  })

  it("The checker accepts a successor of a holder that was killed, or that has lost its lock unseen", async () => {
    assert.deepStrictEqual(
      await anomalies(1, { hold: "1", from: [0, 10], to: [20] }, { hold: "2", from: [5, 21], to: [30, 31] }),
      { mutex: 0 }
    )
    assert.deepStrictEqual(await anomalies(1, { hold: "1", from: [0, 10] }, { hold: "2", from: [5, 21] }), { mutex: 0 })
  })

  it("The checker finds two holders at once, and shows them without the others", async () => {
    const [verdict] = await check(
      history(
        1,
        ...(Array.from({ length: 1000 }, (_, i) => ({
          hold: `before ${i}`,
          from: [i, i + 0.2],
          to: [i + 0.5, i + 0.6]
        })) as Array<Held>),
        { hold: "one", from: [1000, 1010], to: [1100, 1110] },
        { hold: "other", from: [1005, 1050], to: [1060, 1061] },
        { hold: "after", from: [1200, 1210], to: [1220, 1230] }
      )
    )
    assert.strictEqual(verdict?.anomalies, 1)
    assert.deepStrictEqual(
      verdict?.first?.map(([operation]) => (operation?.op === "acquire" ? operation.hold : undefined)),
      ["one", "other"]
    )
  })

  it("The checker finds a holder that was inside again long after others had come", async () => {
    const others = Array.from({ length: 1000 }, (_, i): Held => {
      const at = 100 + i
      return { hold: String(i), from: [at, at + 0.2], to: [at + 0.5, at + 0.6] }
    })
    assert.deepStrictEqual(await anomalies(1, { hold: "stale", from: [0, 10], to: [1099.55, 2000] }, ...others), {
      mutex: 1
    })
  })

  it("The checker finds more holders than there are permits", async () => {
    const held: ReadonlyArray<Held> = [1, 2, 3].map((i) => ({ hold: String(i), from: [0, i], to: [10, 11] }))
    assert.deepStrictEqual(await anomalies(3, ...held), { semaphore: 0 })
    assert.deepStrictEqual(await anomalies(2, ...held), { semaphore: 1 })
  })

  it("The checker finds a writer beside readers, who may be many", async () => {
    const readers = [1, 2, 3].map((i): Held => ({ hold: `reader ${i}`, from: [0, i], to: [10, 11], shared: true }))
    assert.deepStrictEqual(await anomalies(1, ...readers, { hold: "after", from: [5, 11], to: [20, 21] }), { mutex: 0 })
    assert.deepStrictEqual(await anomalies(1, ...readers, { hold: "beside", from: [5, 9], to: [20, 21] }), { mutex: 1 })
    const writer: Held = { hold: "writer", from: [0, 5], to: [20, 21] }
    assert.deepStrictEqual(await anomalies(1, writer, { hold: "reader", from: [6, 9], to: [10, 11], shared: true }), {
      mutex: 1
    })
  })

  it("The checker wants tokens of writers to rise, and lets readers have theirs", async () => {
    const writer = (hold: string, at: number, token: number): Held => ({
      hold,
      from: [at, at + 1],
      to: [at + 2, at + 3],
      token
    })
    const reader: Held = { hold: "reader", from: [5, 6], to: [7, 8], token: 7, shared: true }
    assert.deepStrictEqual(await anomalies(1, writer("1", 0, 7), reader, writer("2", 9, 8)), { mutex: 0, fenced: 0 })
    assert.deepStrictEqual(await anomalies(1, writer("1", 0, 7), reader, writer("2", 9, 7)), { mutex: 0, fenced: 1 })
  })

  it("The checker counts a permit that has long been held when there are too many holders", async () => {
    const long: Held = { hold: "long", from: [0, 10], to: [3000, 3001] }
    const short = Array.from({ length: 1000 }, (_, i): Held => {
      const at = 100 + i
      return { hold: String(i), from: [at, at + 0.2], to: [at + 0.5, at + 0.6] }
    })
    const two = [1, 2].map((i): Held => ({ hold: `late ${i}`, from: [2000, 2000 + i], to: [2010, 2011] }))
    assert.deepStrictEqual(await anomalies(2, long, ...short, two[0]!), { semaphore: 0 })
    assert.deepStrictEqual(await anomalies(2, long, ...short, ...two), { semaphore: 1 })
  })

  it("The checker finds a token that does not rise from one grant to the next", async () => {
    const first: Held = { hold: "1", from: [0, 10], to: [20, 25], token: 7 }
    assert.deepStrictEqual(await anomalies(1, first, { hold: "2", from: [26, 30], to: [31, 32], token: 8 }), {
      mutex: 0,
      fenced: 0
    })
    assert.deepStrictEqual(await anomalies(1, first, { hold: "2", from: [26, 30], to: [31, 32], token: 7 }), {
      mutex: 0,
      fenced: 1
    })
  })

  it("The checker forgives two holders at once where the resource refuses the former one", async () => {
    const of = (outcome: "ok" | "refused") =>
      anomalies(
        1,
        { hold: "1", from: [0, 10], to: [60, 70], token: 7, writes: [[50, 55, outcome]] },
        { hold: "2", from: [20, 30], to: [45, 46], token: 8, writes: [[40, 41, "ok"]] }
      )
    assert.deepStrictEqual(await of("refused"), { mutex: 1, fenced: 0 })
    assert.deepStrictEqual(await of("ok"), { mutex: 1, fenced: 1 })
  })

  const writer = (hold: string, from: number, version: number, wrote: number, outcome: "ok" | "unknown" = "ok") => {
    const about = { lock: "a", process: 1, hold }
    const add = {
      op: "write",
      ...about,
      version,
      element: `of ${hold}`,
      call: wrote,
      return: wrote + 1,
      outcome
    } as const
    return [{ op: "acquire", ...about, call: from, return: from + 1, outcome: "ok" } as const, add]
  }
  const read = (at: number, ...elements: ReadonlyArray<string>) =>
    ({ op: "read", lock: "a", elements, call: at, return: at + 1 }) as const
  const counted = async (...operations: ReadonlyArray<Operation>) =>
    Object.fromEntries(
      (await check(operations)).flatMap(({ anomalies, model }) => (model === "mutex" ? [] : [[model, anomalies]]))
    )

  it("The checker finds a write that replaces what its writer had not read", async () => {
    const first = writer("1", 0, 0, 10)
    assert.deepStrictEqual(await counted(...first, ...writer("2", 20, 1, 30)), { register: 0 })
    // both had read version 0: the later one undoes the earlier one
    assert.deepStrictEqual(await counted(...first, ...writer("2", 5, 0, 30)), { register: 1 })
    // as does one that comes back after others
    assert.deepStrictEqual(
      await counted(...first, ...writer("2", 20, 1, 30), ...writer("3", 5, 0, 40), ...writer("4", 50, 2, 60)),
      { register: 1 }
    )
    assert.deepStrictEqual(await counted(...first, ...writer("2", 5, 0, 30, "unknown")), { register: 0 })
  })

  it("The checker finds an element that a set has lost, or that nobody has added", async () => {
    const both = [...writer("1", 0, 0, 10), ...writer("2", 20, 1, 30)]
    assert.deepStrictEqual(await counted(...both, read(40, "of 1", "of 2")), { register: 0, set: 0 })
    assert.deepStrictEqual(await counted(...both, read(40, "of 2")), { register: 0, set: 1 })
    assert.deepStrictEqual(await counted(...both, read(40, "of 1", "of 2", "of 3")), { register: 0, set: 1 })
    // what was added later need not be there yet
    assert.deepStrictEqual(await counted(...both, read(15, "of 1")), { register: 0, set: 0 })
  })

  it("The checker allows an add of unknown outcome to be in the set or not", async () => {
    const unknown = [...writer("1", 0, 0, 10), ...writer("2", 20, 1, 30, "unknown")]
    assert.deepStrictEqual(await counted(...unknown, read(40, "of 1")), { register: 0, set: 0 })
    assert.deepStrictEqual(await counted(...unknown, read(40, "of 1", "of 2")), { register: 0, set: 0 })
    // but not to vanish again
    assert.deepStrictEqual(await counted(...unknown, read(40, "of 1", "of 2"), read(50, "of 1")), {
      register: 0,
      set: 1
    })
  })

  it("The checker refuses a line that it does not know", async () => {
    const failure = await check([{ op: "steal" } as never]).catch(String)
    assert.match(String(failure), /line 1: unknown op "steal"/)
  })
})
