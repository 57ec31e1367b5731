/**
 * The command line: commands, flags and their help.
 */
import * as Argument from "effect/cli/Argument"
import { ValidationError } from "effect/cli/CliError"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { doctor } from "./doctor/doctor.ts"
import { duration, paragraphs, pattern, toggle } from "./help.ts"
import { inspect } from "./names/inspect.ts"
import { ls } from "./names/ls.ts"
import { Usage } from "./presenter.ts"
import { prefix, redis } from "./redis.ts"
import { release } from "./names/release.ts"
import { runCommand } from "./run/runCommand.ts"
import { uiCommand } from "./ui/uiCommand.ts"
import { watch } from "./watch/watch.ts"

const lsCommand = Command.make(
  "ls",
  {
    pattern,
    json: toggle("json", "Print a JSON array"),
    prefix,
    redis
  },
  ls
).pipe(
  Command.annotate(Usage, "redis-lock ls [--json] [--prefix TEXT] [--redis URL]... [PATTERN]"),
  Command.withShortDescription("List what is held"),
  Command.withDescription(
    paragraphs(`
Lists what is held: locks of every kind, a line per owner, and semaphores with leased permits, a line per
permit. It shows name, owner, the label of the owner's client, mode, hold count (above 1 only for re-entries in Java),
remaining time of the lease, and last fencing token. Latches, and semaphores without leases, are only a number in
Redis: look at one with redis-lock inspect. It uses SCAN, never KEYS, so a busy Redis is not blocked.

Exit codes:
  0   success, even if nothing is held
  64  bad usage
  69  Redis cannot be reached, or refuses
  74  the list could not be written`)
  ),
  Command.withExamples([{ command: "redis-lock ls 'report:*'" }, { command: "redis-lock ls --json" }])
)

const json = toggle("json", "Print a JSON object")

const theName = Argument.String("NAME").pipe(Argument.withDescription("The name of a lock, a semaphore or a latch"))

const inspectCommand = Command.make("inspect", { name: theName, json, prefix, redis }, inspect).pipe(
  Command.annotate(Usage, "redis-lock inspect [--json] [--prefix TEXT] [--redis URL]... NAME"),
  Command.withShortDescription("Show the holders of a lock and its waiters"),
  Command.withDescription(
    paragraphs(`
Shows everything that Redis stores under NAME: its kind, its holders and their leases, the last fencing token, and the queue of a
fair lock; for other locks the waiters, one per process; for a semaphore or a latch, its count and the leased permits.

A latch, and a semaphore without held permits, is only a number in Redis: its kind is "counter".

Exit codes:
  0   success, even if nobody holds it
  64  bad usage
  69  Redis cannot be reached, or refuses
  74  it could not be written`)
  ),
  Command.withExamples([{ command: "redis-lock inspect db:migrate" }])
)

const watchCommand = Command.make(
  "watch",
  {
    pattern,
    interval: duration("interval", "100ms").pipe(
      Flag.withDescription("How often to poll Redis. Default: 1s"),
      Flag.withDefault(Duration.seconds(1))
    ),
    json: toggle("json", "Print a JSON object for each change, also on a terminal"),
    allowRelease: toggle("allow-release", "On a terminal, let a key free the selected lock, after asking"),
    prefix,
    redis
  },
  watch
).pipe(
  Command.annotate(
    Usage,
    "redis-lock watch [--interval 1s] [--json] [--allow-release] [--prefix TEXT] [--redis URL]... [PATTERN]"
  ),
  Command.withShortDescription("Show the held locks, and each change"),
  Command.withDescription(
    paragraphs(`
Shows the held locks, their holders, how long they have been seen to hold them, what is left of their leases, and how
many waiters Redis knows of. It scans all keys once per --interval, and misses what begins and ends in between.

On a terminal it draws a table. Keys: q quits, s sorts by name, age, lease or waiters, / filters by name and holder, j, k and
the arrows select a lock and scroll; with --allow-release, f frees it. Elsewhere, and with --json, it prints a line for each change.

Exit codes:
  0      you quit, or the reader of the pipe has gone
  64     bad usage
  69     Redis cannot be reached at the start, or refuses
  74     it could not be written
  128+n  signal n arrived`)
  ),
  Command.withExamples([{ command: "redis-lock watch 'report:*'" }, { command: "redis-lock watch --json | jq .name" }])
)

const releaseCommand = Command.make(
  "release",
  {
    name: theName,
    force: toggle("force", "Required, as the holder keeps working until it notices"),
    yes: toggle("yes", "Do not ask; required where stdin is not a terminal"),
    prefix,
    redis
  },
  release
).pipe(
  Command.validate(({ force, yes }) =>
    !force
      ? Effect.fail(new ValidationError({ message: "release frees what somebody else holds: it needs --force" }))
      : !yes && !process.stdin.isTTY
        ? Effect.fail(new ValidationError({ message: "there is no terminal to ask on: it needs --yes" }))
        : Effect.void
  ),
  Command.annotate(Usage, "redis-lock release --force [--yes] [--prefix TEXT] [--redis URL]... NAME"),
  Command.withShortDescription("Take a lock away from its holder"),
  Command.withDescription(
    paragraphs(`
Takes NAME away from its holder and wakes the next waiter. A read-write lock is taken from its writer or from all its readers; a
semaphore with leased permits gets back all permits that are held, at most a thousand at a time. On a terminal it shows the holder
and asks first.

The holder is not stopped. Redis notifies one that has had NAME for two seconds, if it can (redis-lock doctor, check tracking);
any other, such as one in Java, notices when it next renews, at most a third of its lease later. Until then two processes may work
at once, unless the resource checks the fencing token. If you can, stop the holder instead.

Exit codes:
  0   freed
  64  bad usage, or no --yes where stdin is not a terminal
  65  NAME has no holder that Redis knows of: it is a latch, a semaphore without held leased permits, or something else
  66  nobody holds it, or the holder has changed since it was shown
  69  Redis cannot be reached, or refuses
  74  freed, but that could not be written
  75  a thousand permits were freed, but more were held: run it again
  77  the answer was no; nothing was freed`)
  ),
  Command.withExamples([{ command: "redis-lock release --force db:migrate" }])
)

const doctorCommand = Command.make("doctor", { json, prefix, redis }, doctor).pipe(
  Command.annotate(Usage, "redis-lock doctor [--json] [--prefix TEXT] [--redis URL]..."),
  Command.withShortDescription("Check whether a Redis is fit for locks"),
  Command.withDescription(
    paragraphs(`
Checks each server that --redis names: version and mode, eviction, persistence, replicas, clock, permissions and latency. Each line
says ok, warning or problem, and what to do. It acquires locks of the common kinds, permits and a latch, wins an election, and runs
something once, under names that begin with redis-lock:doctor:. The keys expire within ten seconds; if it is killed
meanwhile, some last for a day, and a few small ones of the election and of the fair lock's queue may stay.

Exit codes:
  0   no problem, perhaps warnings
  2   a problem
  64  bad usage
  69  Redis cannot be reached
  74  the result could not be written`)
  ),
  Command.withExamples([{ command: "redis-lock doctor --redis redis://10.0.0.1" }])
)

export const cli = Command.make("redis-lock").pipe(
  Command.withSubcommands([
    runCommand,
    lsCommand,
    inspectCommand,
    watchCommand,
    uiCommand,
    releaseCommand,
    doctorCommand
  ]),
  Command.withDescription("Runs commands under distributed locks on Redis, and lists, inspects and frees such locks.")
)
