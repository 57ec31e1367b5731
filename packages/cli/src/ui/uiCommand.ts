/**
 * The command line of `redis-lock ui`. What it runs is loaded when it is asked for: the other commands need no HTTP server.
 */
import { ValidationError } from "effect/cli/CliError"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { duration, paragraphs, pattern, toggle, wholeNumber } from "../help.ts"
import { Usage } from "../presenter.ts"
import { prefix, redis } from "../redis.ts"
import { isLoopback } from "./loopback.ts"

/** What a header can carry, and what nobody guesses. */
const tokens = /^[!-~]{16,}$/

/** `--token`, else the variable; redacted from the start. An empty variable is none. */
const token = Flag.Redacted("token").pipe(
  Flag.withMetavar("TEXT"),
  Flag.withDescription(
    "A password for the page, at least 16 ASCII characters. Others can see command lines: better set $REDIS_LOCK_UI_TOKEN"
  ),
  Flag.optional,
  Flag.map((given) => Option.getOrElse(given, () => fromEnvironment())),
  Flag.filter(
    (token) => token === undefined || tokens.test(Redacted.value(token)),
    () => "at least 16 ASCII characters without spaces, as from: openssl rand -hex 16"
  )
)

const fromEnvironment = (): Redacted.Redacted | undefined => {
  const text = process.env["REDIS_LOCK_UI_TOKEN"] ?? ""
  return text === "" ? undefined : Redacted.make(text)
}

export const uiCommand = Command.make(
  "ui",
  {
    pattern,
    port: wholeNumber("port", 0, 65_535).pipe(
      Flag.withDescription("The port of the page; 0 takes any free one. Default: 7379"),
      Flag.withDefault(7379)
    ),
    host: Flag.String("host").pipe(
      Flag.withMetavar("ADDRESS"),
      Flag.withDescription("The address to listen on. Any but this machine's own needs a token. Default: 127.0.0.1"),
      Flag.withDefault("127.0.0.1")
    ),
    allowHost: Flag.String("allow-host").pipe(
      Flag.withMetavar("NAME"),
      Flag.withDescription("Another name under which browsers reach the page, as behind a proxy. Needs a token"),
      Flag.atLeast(0)
    ),
    token,
    interval: duration("interval", "100ms").pipe(
      Flag.withDescription("How often to poll Redis. Default: 500ms"),
      Flag.withDefault(Duration.millis(500))
    ),
    allowRelease: toggle("allow-release", "Let the page free what matches PATTERN, after a question. Needs a token"),
    prefix,
    redis
  },
  (options) =>
    Effect.flatMap(
      Effect.promise(() => import("./ui.ts")),
      ({ ui }) => ui(options)
    )
).pipe(
  Command.validate(({ allowHost, allowRelease, host, token }) => {
    if (token !== undefined) return Effect.void
    const without =
      !isLoopback(host) || allowHost.length > 0
        ? "others can reach the page then: it"
        : allowRelease
          ? "every user of this machine could free locks: --allow-release"
          : undefined
    if (without === undefined) return Effect.void
    const message = `${without} needs --token, or better REDIS_LOCK_UI_TOKEN=$(openssl rand -hex 16)`
    return Effect.fail(new ValidationError({ message }))
  }),
  Command.annotate(
    Usage,
    "redis-lock ui [--port 7379] [--host ADDRESS] [--allow-host NAME]... [--token TEXT] [--interval 500ms] [--allow-release] [--prefix TEXT] [--redis URL]... [PATTERN]"
  ),
  Command.withShortDescription("Show the held locks in a browser"),
  Command.withDescription(
    paragraphs(`
Serves a page that shows the held locks as they change: holders, leases, waiters, and how long each lock was held since
redis-lock ui was started. It prints the page's address, and serves it until a signal arrives. Like redis-lock watch, it looks at all
keys with SCAN once per --interval, however many pages are open: what begins and ends in between, it misses.

The page is for this machine alone, unless there is a --token, and shows only: with --allow-release and a token it also frees what
matches PATTERN, as redis-lock release --force does.

Exit codes:
  64     bad usage
  69     Redis cannot be reached at the start
  71     the port is in use, or the address is not this machine's
  74     the address could not be written
  128+n  signal n arrived`)
  ),
  Command.withExamples([
    { command: "redis-lock ui" },
    { command: "REDIS_LOCK_UI_TOKEN=$(cat token.txt) redis-lock ui --allow-release 'report:*'" }
  ])
)
