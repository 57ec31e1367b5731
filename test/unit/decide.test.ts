/**
 * What the replies of a quorum's members come to.
 */
import { assert, describe, it } from "@effect/vitest"
import { Exit } from "effect"
import { LockStoreError, type LockStore } from "effect-redis-lock"
import type { Outcome } from "../../packages/core/dist/internal/store/quorum/QuorumCall.js"
import { decide } from "../../packages/core/dist/internal/store/quorum/votes.js"
import { operations } from "../kit/operations.ts"

const failed: Outcome<unknown> = Exit.fail(new LockStoreError({ operation: "any", lock: "a", reason: "NotConnected" }))
const pending = undefined

/** What a member has of a lock: each field is followed by its value. */
const inspected = (remaining: number, token: string | null, ...fields: ReadonlyArray<string>) => ({
  remaining,
  token,
  fields: new Map(fields.flatMap((field, i) => (i % 2 === 0 ? [[field, fields[i + 1]] as const] : [])))
})

/** Numbers, lists and what was inspected are replies. */
const decided = (operation: LockStore.Operation, members: ReadonlyArray<unknown>) => {
  const outcomes = members.map((member) =>
    member === failed || member === pending ? (member as Outcome<unknown> | undefined) : Exit.succeed(member)
  )
  const isLast = outcomes.every((outcome) => outcome !== undefined)
  const rule = operations[operation].quorum!
  return decide(rule, outcomes) ?? (isLast ? "undecided" : "waits")
}

describe("an operation on a quorum", () => {
  it("An operation on a quorum is confirmed by a majority, whatever the others reply, and as soon as that is known", () => {
    assert.deepStrictEqual(decided("lock/raise_token", [1, 1, 1, 0, failed]), 1)
    assert.deepStrictEqual(decided("lock/raise_token", [1, 1, 1, pending, pending]), 1)
    assert.deepStrictEqual(decided("lock/raise_token", [1, pending, 1]), 1)
  })

  it("An operation on a quorum is refused when a majority can no longer confirm it", () => {
    assert.deepStrictEqual(decided("lock/raise_token", [0, 0, 0, 1, 1]), 0)
    assert.deepStrictEqual(decided("lock/raise_token", [0, 0, 0, pending, pending]), 0)
    assert.deepStrictEqual(decided("lock/raise_token", [0, -1, 1]), -1)
  })

  it("An operation on a quorum is open while members that have not answered could decide it", () => {
    assert.deepStrictEqual(decided("lock/raise_token", [1, 1, 0, 0, pending]), "waits")
    assert.deepStrictEqual(decided("lock/raise_token", [1, pending, pending]), "waits")
    assert.deepStrictEqual(decided("lock/raise_token", [failed, failed, pending]), "waits")
  })

  it("An operation on a quorum is undecided if members that failed could have decided it", () => {
    assert.deepStrictEqual(decided("lock/raise_token", [1, 1, 0, failed, failed]), "undecided")
    assert.deepStrictEqual(decided("lock/raise_token", [0, 1, failed]), "undecided")
    assert.deepStrictEqual(decided("lock/raise_token", [1, failed, failed]), "undecided")
    assert.deepStrictEqual(decided("lock/inspect", [inspected(-2, null), failed, failed]), "undecided")
  })

  it("A release on a quorum is done once a majority has run it, whether or not each of them still had the lock", () => {
    for (const operation of ["lock/release", "read_lock/release", "write_lock/release"] as const) {
      assert.deepStrictEqual(decided(operation, [1, -1, failed]), 1, operation)
      assert.deepStrictEqual(decided(operation, [2, 1, -1, failed, failed]), 2, operation)
      assert.deepStrictEqual(decided(operation, [1, -1, pending]), "waits", operation)
      // others have a majority, or have had one
      assert.deepStrictEqual(decided(operation, [1, -1, -1]), -1, operation)
      assert.deepStrictEqual(decided(operation, [0, 0, failed]), 0, operation)
      assert.deepStrictEqual(decided(operation, [1, failed, failed]), "undecided", operation)
    }
  })

  it("An operation on a quorum that inspects, or releases by force, waits for all members", () => {
    for (const operation of ["lock/force_release", "read_lock/force_release", "write_lock/force_release"] as const) {
      assert.deepStrictEqual(decided(operation, [1, 1, 1, 1, pending]), "waits", operation)
      assert.deepStrictEqual(decided(operation, [1, 3, 1, 0, failed]), 3, operation)
      assert.deepStrictEqual(decided(operation, [1, 0, 0, 0, failed]), 0, operation)
    }
    assert.deepStrictEqual(decided("lock/found", ["none", "none", "none", "none", pending]), "waits")
  })
})

describe("a renewal of several on a quorum", () => {
  it("A renewal of several locks on a quorum is decided for each lock by itself", () => {
    assert.deepStrictEqual(
      decided("lock/renew", [
        [1, 0, 1],
        [1, 0, 0],
        [0, 1, 1]
      ]),
      [1, 0, 1]
    )
  })

  it("A renewal of several locks on a quorum leaves open what a failed member could have confirmed, and is no loss for the others", () => {
    assert.deepStrictEqual(decided("lock/renew", [[1, 1, 0], [1, 0, 0], failed]), [1, -1, 0])
    assert.deepStrictEqual(decided("read_lock/renew", [[1, 1, 0], [1, 0, 0], failed]), [1, -1, 0])
  })

  it("A renewal of several locks on a quorum waits while anything is open, and no longer", () => {
    assert.deepStrictEqual(decided("lock/renew", [[1, 1], [1, 0], pending]), "waits")
    assert.deepStrictEqual(decided("lock/renew", [[1, 1], [1, 1], pending]), [1, 1])
    assert.deepStrictEqual(decided("lock/renew", [[1, 0], failed, failed]), "undecided")
  })
})

describe("a look at a quorum", () => {
  const free = inspected(-2, null)
  const by = (owner: string, left: number, token: string) => inspected(left, token, owner, "1")

  it("Inspecting a quorum shows the holder of a majority, until the majority runs out, with the token that a majority knows", () => {
    assert.deepStrictEqual(
      decided("lock/inspect", [by("x", 500, "7"), by("x", 300, "9"), by("x", 400, "8")]),
      by("x", 400, "8")
    )
    assert.deepStrictEqual(decided("lock/inspect", [by("x", 500, "7"), by("x", -1, "7"), free]), by("x", 500, "7"))
    assert.deepStrictEqual(decided("lock/inspect", [by("x", -1, "7"), by("x", -1, "7"), free]), by("x", -1, "7"))
  })

  it("Inspecting a quorum shows the hold count that a majority has", () => {
    const held = (count: number) => inspected(500, null, "x", String(count))
    assert.deepStrictEqual(decided("lock/inspect", [held(1), held(2), held(2)]), held(2))
    assert.deepStrictEqual(decided("lock/inspect", [held(2), held(1), held(1)]), held(1))
    assert.deepStrictEqual(decided("lock/inspect", [held(1), held(3), held(2)]), held(2))
  })

  it("Inspecting a quorum shows no holder if nobody has a majority", () => {
    assert.deepStrictEqual(decided("lock/inspect", [by("x", 500, "7"), by("y", 300, "9"), free]), inspected(-2, "7"))
    assert.deepStrictEqual(decided("lock/inspect", [free, free, failed]), free)
    const read = (owner: string) => inspected(500, null, "mode", "read", owner, "1")
    assert.deepStrictEqual(decided("lock/inspect", [read("x"), read("y"), read("z")]), free)
  })

  it("Inspecting a quorum shows the readers that a majority knows", () => {
    const read = (...owners: ReadonlyArray<string>) =>
      inspected(500, null, "mode", "read", ...owners.flatMap((owner) => [owner, "1"]))
    assert.deepStrictEqual(decided("lock/inspect", [read("x", "y"), read("y", "x"), read("y")]), read("x", "y"))
  })

  it("Inspecting a quorum waits for all members, as a late one may report the lock free", () => {
    assert.deepStrictEqual(decided("lock/inspect", [free, free, pending]), "waits")
    assert.deepStrictEqual(decided("lock/found", ["hash", "none", pending]), "waits")
    assert.deepStrictEqual(decided("lock/found", ["none", "none", "hash"]), "hash")
    assert.deepStrictEqual(decided("lock/found", ["none", "none", failed]), "none")
  })
})
