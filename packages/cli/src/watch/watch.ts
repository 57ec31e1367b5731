/**
 * `redis-lock watch`: what happens to the locks, on a terminal as a picture, elsewhere as lines.
 */
import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"
import type { LockChange, LockState, LockStoreError, RedisLock } from "effect-redis-lock"
import { ExitWith, type Failure } from "../exit.ts"
import { heldBy, jsonOf } from "../names/nameState.ts"
import { locksIn, type Target } from "../redis.ts"
import { changesOf } from "./changes.ts"
import { free, whatWasFreed, whyNothingWasFreed } from "../names/release.ts"
import { say } from "../say.ts"
import * as Signals from "../run/Signals.ts"
import * as Terminal from "./terminal.ts"
import { print } from "../text.ts"
import { isKept, visible } from "../visible.ts"
import { changed, empty, frame, pressed, type View } from "./watchView.ts"

export interface WatchOptions extends Target {
  readonly pattern: string
  readonly json: boolean
  readonly interval: Duration.Duration
  readonly allowRelease: boolean
}

export const watch = (options: WatchOptions): Effect.Effect<void, ExitWith | Failure> =>
  (options.json || !process.stdout.isTTY || !process.stdin.isTTY ? lines(options) : picture(options)).pipe(
    Effect.scoped,
    Effect.provide(locksIn(options))
  )

/** The reader has gone. */
const readerGone = new ExitWith({ code: 0, message: "" })

const lines = (options: WatchOptions) =>
  changesOf(options, "fails", (failure) => (failure === undefined ? Effect.void : say(failure.message))).pipe(
    // a line per renewal would hide the others
    Stream.filter(({ _tag }) => options.json || _tag !== "Renewed"),
    Stream.runForEach((change) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) =>
        print(`${(options.json ? jsonLineOf : lineOf)(change, new Date(now).toISOString())}\n`, Effect.fail(readerGone))
      )
    )
  )

const jsonLineOf = ({ _tag, state }: LockChange, time: string): string =>
  JSON.stringify({ time, change: _tag.toLowerCase(), ...jsonOf(state) })

const lineOf = ({ _tag, state }: LockChange, time: string): string => {
  const [first] = state.holders
  // by its minHold: nobody holds it, and nobody has acquired it
  const word = _tag === "Acquired" && first !== undefined && isKept(first.owner) ? "kept" : _tag.toLowerCase()
  const what = `${time} ${word.padEnd(8)} ${visible(state.name)}`
  return _tag === "Released" ? what : `${what}: ${heldBy(state)}`
}

/** Between two pictures in which nothing but the time has changed. */
const drawEvery = "250 millis"

/** What changes the view. */
type Event =
  | { readonly _tag: "Change"; readonly change: LockChange }
  | { readonly _tag: "Key"; readonly key: string }
  | { readonly _tag: "Told"; readonly message: string }
  | { readonly _tag: "Tick" }

const picture = (options: WatchOptions) =>
  Effect.gen(function* () {
    const signals = yield* Signals.listen
    const events = yield* Queue.unbounded<Event>()
    const terminal = yield* Terminal.open((key) => Queue.offerUnsafe(events, { _tag: "Key", key }))
    const told = (message: string) => Queue.offer(events, { _tag: "Told", message })
    yield* Effect.forkScoped(Effect.forever(Effect.delay(Queue.offer(events, { _tag: "Tick" }), drawEvery)))
    const looking = changesOf(options, "fails", (failure) =>
      Effect.asVoid(told(failure === undefined ? "" : stale(failure)))
    ).pipe(Stream.runForEach((change) => Queue.offer(events, { _tag: "Change", change })))
    yield* Effect.raceFirst(Effect.raceFirst(showing(options, terminal, events), looking), Signals.exitOn(signals))
  })

/** Begins with what matters: a narrow terminal cuts the rest. */
const stale = ({ message, reason }: LockStoreError): string =>
  `Redis cannot be asked (${reason}): this was seen last. ${message}`

/** Draws after each event, until the user leaves. */
const showing = Effect.fnUntraced(function* (
  { allowRelease, pattern }: WatchOptions,
  terminal: Terminal.Terminal,
  events: Queue.Queue<Event>
) {
  let view = empty(pattern, allowRelease)
  while (true) {
    yield* terminal.draw(frame(view, terminal.size(), yield* Clock.currentTimeMillis))
    // all that has happened meanwhile is one picture
    for (const event of yield* Queue.takeAll(events)) {
      const now = yield* Clock.currentTimeMillis
      if (event._tag === "Change") view = changed(view, event.change, now)
      else if (event._tag === "Told") view = { ...view, message: visible(event.message) }
      else if (event._tag === "Key") {
        const { todo, view: next } = pressed(view, event.key, now)
        view = next
        if (todo === "quit") return
        if (todo !== undefined) view = yield* freed(view, todo)
      }
    }
  }
})

const freed = (view: View, seen: LockState): Effect.Effect<View, never, RedisLock.RedisLock> =>
  free(seen).pipe(
    Effect.flatMap((count) =>
      count === 0 ? whyNothingWasFreed(seen.name) : Effect.succeed(`freed ${whatWasFreed(seen, count)}`)
    ),
    Effect.match({
      onSuccess: (message) => ({ ...view, message }),
      onFailure: ({ message }) => ({ ...view, message: visible(message) })
    })
  )
