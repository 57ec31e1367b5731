/**
 * The command line: commands, flags and their help.
 */
import * as Argument from "effect/cli/Argument"
import { ValidationError } from "effect/cli/CliError"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Stdio from "effect/Stdio"
import { parse } from "./duration.ts"
import { ls } from "./ls.ts"
import { Usage } from "./presenter.ts"
import { defaultLease, redis } from "./redis.ts"
import { run } from "./run.ts"

/** Indents every line but the first of a description, which the help indents itself. */
const paragraphs = (text: string): string => text.trim().replaceAll(/\n(?=.)/g, "\n  ")

const duration = (name: string) =>
  Flag.String(name).pipe(
    Flag.withMetavar("DURATION"),
    Flag.filterMap(parse, () => "500ms, 10s, 2m, 1h30m, or a plain number of seconds")
  )

const shortestLease = Duration.seconds(1)

/**
 * Only the words after `--` are the command, so that none of its flags is ever taken for ours. The parser puts all operands
 * into one list, so this compares that list with the words as they were typed.
 */
const commandBehindDashes = (args: ReadonlyArray<string>) =>
  Effect.flatMap(
    Stdio.Stdio.use((stdio) => stdio.args),
    (typed) =>
      typed.length - typed.indexOf("--") === 2 + args.length
        ? Effect.void
        : Effect.fail(new ValidationError({ message: "NAME goes before --, COMMAND and its arguments after it" }))
  )

const runCommand = Command.make(
  "run",
  {
    name: Argument.String("NAME").pipe(Argument.withDescription("The name of the lock, the same on all machines")),
    command: Argument.String("COMMAND").pipe(Argument.withDescription("The program to run, looked up on the PATH")),
    args: Argument.String("ARGS").pipe(
      Argument.withDescription("Its arguments, passed unchanged"),
      Argument.variadic()
    ),
    wait: duration("wait").pipe(
      Flag.withDescription("How long to wait for the lock; 0 tries once. Default: without limit"),
      Flag.optional
    ),
    lease: duration("lease").pipe(
      Flag.filter(
        (lease) => Duration.isGreaterThanOrEqualTo(lease, shortestLease),
        () => "at least 1s"
      ),
      Flag.withDescription("How long the lock outlives redis-lock if it dies; renewed while it runs. Default: 30s"),
      Flag.withDefault(defaultLease)
    ),
    redis
  },
  run
).pipe(
  Command.validate(({ args }) => commandBehindDashes(args)),
  Command.annotate(Usage, "redis-lock run [--wait 10s] [--lease 30s] [--redis URL] NAME -- COMMAND ARGS..."),
  Command.withShortDescription("Run a command under a lock"),
  Command.withDescription(
    paragraphs(`
Waits for the lock NAME, runs COMMAND under it, and exits with the command's exit code.

redis-lock passes SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 and the other signals that would end it on to the
command and all its children. If the lock is lost, they get SIGTERM and, before the lease ends, SIGKILL. No shell is
involved unless you name one.

The command inherits redis-lock's environment, plus:
  REDIS_LOCK_NAME   the lock's name
  REDIS_LOCK_TOKEN  the fencing token: higher for every grant of that name
  REDIS_LOCK_OWNER  the owner, as redis-lock ls shows it

Exit codes, besides the command's own:
  64     bad usage
  69     Redis cannot be reached, or refused
  70     the lock was lost: the command was stopped, or ended too late
  75     the wait timed out
  126    the command cannot be executed
  127    the command was not found
  128+n  signal n killed the command, or arrived while redis-lock waited for the lock`)
  ),
  Command.withExamples([
    { command: "redis-lock run --wait 10s device:42 -- ./calibrate.sh --full" },
    { command: "redis-lock run --wait 0 db:migrate -- sh -c 'make backup && make migrate'" }
  ])
)

const lsCommand = Command.make(
  "ls",
  {
    pattern: Argument.String("PATTERN").pipe(
      Argument.withDescription("Only names that match this Redis glob pattern; quote it for the shell"),
      Argument.withDefault("*")
    ),
    json: Flag.Boolean("json").pipe(Flag.withDescription("Print a JSON array"), Flag.withDefault(false)),
    redis
  },
  ls
).pipe(
  Command.annotate(Usage, "redis-lock ls [--json] [--redis URL] [PATTERN]"),
  Command.withShortDescription("List the locks that are held"),
  Command.withDescription(
    paragraphs(`
Lists the locks that are held: name, owner, hold count, remaining time of the lease, and last fencing token. It
walks the keys with SCAN, never with KEYS, so a busy Redis is not blocked.

Exit codes:
  0   success, even if no lock is held
  64  bad usage
  69  Redis cannot be reached, or refused
  74  the list could not be written`)
  ),
  Command.withExamples([{ command: "redis-lock ls 'report:*'" }, { command: "redis-lock ls --json" }])
)

export const cli = Command.make("redis-lock").pipe(
  Command.withSubcommands([runCommand, lsCommand]),
  Command.withDescription("Runs commands under distributed locks on Redis, and lists such locks.")
)
