/**
 * The view of `redis-lock watch`: what keys do, and what fits on the terminal.
 */
import { assert, it } from "@effect/vitest"
import { displayWidth } from "effect/cli/CliOutput"
import { Duration } from "effect"
import type { LockChange } from "effect-redis-lock"
import { changed, empty, frame, pressed, shownRows, type View } from "../../packages/cli/dist/watch/watchView.js"

const held = (name: string, owner: string, leaseMillis: number, waiting: number): LockChange => ({
  _tag: "Acquired",
  state: {
    name,
    kind: "lock",
    holders: [{ owner, holdCount: 1, mode: "exclusive", remaining: Duration.millis(leaseMillis) }],
    token: undefined,
    waiters: Array.from({ length: waiting }, (_, i) => ({ owner: `client-${i}:1` })),
    waiting,
    count: undefined,
    permits: [],
    held: 0
  }
})

const now = 10_000

/** Without the marks of the selected line. */
const plain = (line: string): string => line.replace("\u001b[7m", "").replace("\u001b[27m", "")

/** Three locks: b is the oldest, c ends first, a has the most waiters. */
const three = (mayRelease = true): View => {
  let view = changed(empty("*", mayRelease), held("b", "owner-2", 30_000, 0), 1000)
  view = changed(view, held("a", "owner-1", 20_000, 5), 2000)
  return changed(view, held("c", "owner-3", 15_000, 1), 3000)
}

it("redis-lock watch shows a semaphore's permits, the lease of the one that ends first, and how many processes wait", () => {
  const { state } = held("s", "", 0, 0)
  const permits = [1000, 30_000].map((millis, i) => ({ id: `permit-${i}`, remaining: Duration.millis(millis) }))
  const waiters = ["one:1", "one:2", "another:1"].map((owner) => ({ owner }))
  const semaphore = { ...state, kind: "permit semaphore", holders: [], permits, held: 2, waiters, waiting: 3 } as const
  const view = changed(empty("*", false), { _tag: "Acquired", state: semaphore }, now)
  assert.match(
    frame(view, { columns: 80, rows: 10 }, now).map(plain).join("\n"),
    /^s +2 permits +0\.0s +#\.{9} +1\.0s +2, >0\.0s *$/m
  )
})

it("redis-lock watch asks whether to free what a minHold keeps without naming a holder that works on", () => {
  for (const [owner, question] of Object.entries({
    "owner-1": '[y/N] Free "a"? Its holder keeps working until it notices.',
    "owner-1:kept": '[y/N] Free "a"? '
  })) {
    const view = changed(empty("*", true), held("a", owner, 30_000, 0), 1000)
    assert.strictEqual(frame(pressed(view, "f", now).view, { columns: 100, rows: 10 }, now).at(-1), question)
  }
})

it("redis-lock watch shows for how long the waiter that has waited longest waits, also after the lock was handed over", () => {
  const lastOf = (view: View) =>
    plain(frame(view, { columns: 100, rows: 10 }, now)[2]!)
      .trim()
      .split(/  +/)
      .at(-1)
  const none = changed(empty("*", false), held("a", "owner-1", 30_000, 0), 1000)
  const waits = changed(none, { ...held("a", "owner-1", 30_000, 1), _tag: "Changed" }, 2000)
  const handedOver = changed(waits, held("a", "owner-2", 30_000, 2), 5000)
  assert.deepStrictEqual([none, waits, handedOver].map(lastOf), ["0", "1, 8.0s", "2, 8.0s"])
  // Redis knows it better
  const { state } = held("a", "owner-1", 30_000, 0)
  const waiters = [{ owner: "client:1", since: Duration.seconds(3) }]
  assert.strictEqual(
    lastOf(changed(none, { _tag: "Changed", state: { ...state, waiters, waiting: 1 } }, 9000)),
    "1, 4.0s"
  )
})

const press = (view: View, ...keys: ReadonlyArray<string>): View =>
  keys.reduce((before, key) => {
    const { todo, view: next } = pressed(before, key, now)
    assert.isUndefined(todo)
    return next
  }, view)

const names = (view: View) => shownRows(view, now).map(({ state }) => state.name)

it("The key s sorts the locks of redis-lock watch by age, lease, waiters, and by name again", () => {
  const view = three()
  assert.deepStrictEqual(names(view), ["a", "b", "c"])
  assert.deepStrictEqual(names(press(view, "s")), ["b", "a", "c"])
  assert.deepStrictEqual(names(press(view, "s", "s")), ["c", "a", "b"])
  assert.deepStrictEqual(names(press(view, "s", "s", "s")), ["a", "c", "b"])
  assert.deepStrictEqual(names(press(view, "s", "s", "s", "s")), ["a", "b", "c"])
})

it("The filter of redis-lock watch finds names and owners, while it is typed, kept, and until it is cleared", () => {
  const typed = press(three(), "/", "o", "w", "n", "e", "r", "-", "3")
  assert.strictEqual(typed.mode, "filter")
  assert.deepStrictEqual(names(typed), ["c"])
  assert.deepStrictEqual(names(press(typed, "\u007f")), ["a", "b", "c"])
  // keys of the list are text in here
  assert.strictEqual(press(typed, "q").filter, "owner-3q")
  const kept = press(typed, "\r")
  assert.strictEqual(kept.mode, "list")
  assert.deepStrictEqual(names(kept), ["c"])
  assert.deepStrictEqual(names(press(kept, "/", "\u001b")), ["a", "b", "c"])
  assert.deepStrictEqual(names(press(kept, "\u001b")), ["a", "b", "c"])
  // as on the page of `redis-lock ui`
  assert.deepStrictEqual(names(press(three(), "/", "B")), ["b"])
})

it("The last line of redis-lock watch lists the keys that do something at the moment", () => {
  const keys = (view: View) => frame(view, { columns: 80, rows: 24 }, now).at(-1)
  assert.strictEqual(keys(three(false)), "q quit  s sort  / filter  j k select")
  assert.strictEqual(keys(three()), "q quit  s sort  / filter  j k select  f free")
  assert.strictEqual(keys(press(three(), "/", "a", "\r")), "q quit  s sort  / filter  Esc all  j k select  f free")
})

it("The selection by which redis-lock watch scrolls is visible without --allow-release, too", () => {
  const lines = frame(press(three(false), "j"), { columns: 80, rows: 24 }, now)
  assert.deepStrictEqual(
    lines.filter((line) => line.startsWith("\u001b[7m")),
    [lines[3]]
  )
})

it("The head of redis-lock watch counts matches only once there is a filter", () => {
  const head = (view: View) => frame(view, { columns: 80, rows: 24 }, now)[0]
  assert.strictEqual(head(press(three(), "/")), "3 held of *, by name")
  assert.strictEqual(head(press(three(), "/", "a")), '3 held of *, 1 match "a", by name')
})

it("In the filter of redis-lock watch Backspace takes a whole character back, also one outside the basic plane", () => {
  assert.strictEqual(press(three(), "/", "b", "\u{1f512}", "\u007f").filter, "b")
})

it("What redis-lock watch has to tell stays until a key is pressed, whatever happens to other locks", () => {
  const told = changed({ ...three(), message: "freed it" }, held("d", "owner-4", 1000, 0), now)
  assert.strictEqual(frame(told, { columns: 80, rows: 24 }, now).at(-1), "freed it")
  assert.strictEqual(press(told, "j").message, "")
})

it("The selection of redis-lock watch stays with its lock when others come and go, and ends at the ends", () => {
  const view = press(three(), "j", "j", "j", "k")
  assert.strictEqual(view.selected, "b")
  const later = changed(view, held("a0", "owner-4", 1000, 0), now)
  assert.strictEqual(press(later, "\u001b[B").selected, "c")
  const gone = changed(later, { ...held("b", "owner-2", 0, 0), _tag: "Released" }, now)
  assert.strictEqual(press(gone, "f").selected, "a")
})

it("redis-lock watch frees the selected lock only with --allow-release, and only if the answer is y", () => {
  assert.strictEqual(press(three(false), "f").mode, "list")
  const asked = press(three(), "j", "f")
  assert.strictEqual(asked.mode, "confirm")
  assert.strictEqual(press(asked, "n").mode, "list")
  assert.strictEqual(press(asked, "\r").mode, "list")
  const { todo, view } = pressed(asked, "y", now)
  assert.strictEqual(typeof todo === "object" ? todo.name : todo, "b")
  assert.strictEqual(view.mode, "list")
  // those who were shown are to lose it, not who holds it by now
  const changedHands = changed(asked, { ...held("b", "owner-9", 0, 0), _tag: "Changed" }, now)
  const { todo: still } = pressed(changedHands, "y", now)
  assert.deepStrictEqual(still, todo)
  // it was released while the question stood
  const released = changed(asked, { ...held("b", "owner-2", 0, 0), _tag: "Released" }, now)
  assert.isUndefined(pressed(released, "y", now).todo)
})

it("redis-lock watch is left by q, by Ctrl-D, and by Ctrl-C from anywhere", () => {
  for (const key of ["q", "\u0004", "\u0003"]) assert.strictEqual(pressed(three(), key, now).todo, "quit")
  assert.strictEqual(pressed(press(three(), "/"), "\u0003", now).todo, "quit")
})

it("Long names and holders leave room for age, lease and number of waiters where the terminal has it", () => {
  const shown = (name: string, owner: string, columns: number) =>
    frame(changed(empty("*", false), held(name, owner, 30_000, 17), now), { columns, rows: 24 }, now).map(plain)
  const [long, short] = ["x".repeat(300), "short"]
  for (const [name, owner] of [
    [long, long],
    [long, short],
    [short, long]
  ] as const) {
    for (const columns of [80, 110]) {
      const [, titles, row] = shown(name, owner, columns)
      assert.match(titles!, /AGE +LEASE +WAITING *$/)
      assert.match(row!, / 0\.0s +#{10} +30\.0s +17, >0\.0s *$/, `${columns} columns`)
      // nothing is cut for want of room that is left
      assert.strictEqual(displayWidth(titles!), columns)
      assert.strictEqual(row!.includes(short), name !== owner)
    }
  }
})

it("A picture of redis-lock watch fits its terminal, however small, and shows the selected lock", () => {
  let view = empty("*", true)
  for (let i = 0; i < 100; i++) {
    view = changed(view, held(`${String(i).padStart(3, "0")} \u6f22\u5b57 ${"x".repeat(i)}`, "owner", 1000, 0), now)
  }
  view = press(view, ...Array.from({ length: 60 }, () => "j"))
  for (const [columns, rows] of [
    [160, 24],
    [40, 10],
    [10, 4],
    [10, 3],
    [10, 2],
    [1, 1]
  ] as const) {
    const lines = frame(view, { columns, rows }, now)
    assert.isAtMost(lines.length, rows, `${columns} x ${rows}`)
    for (const line of lines.map(plain)) assert.isAtMost(displayWidth(line), columns)
    if (columns === 160) assert.isTrue(lines.some((line) => line.startsWith("\u001b[7m060 ")))
  }
})

it("The question of redis-lock watch begins with the keys that answer it, which a narrow terminal does not cut off", () => {
  const view = changed(empty("*", true), held("n".repeat(40), "owner", 30_000, 0), 1000)
  assert.match(frame(press(view, "f"), { columns: 40, rows: 10 }, now).at(-1)!, /^\[y\/N\] Free "n+$/)
})
