/**
 * The command line of `redis-lock run`.
 */
import * as Argument from "effect/cli/Argument"
import { ValidationError } from "effect/cli/CliError"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stdio from "effect/Stdio"
import { duration, paragraphs, toggle, wholeNumber } from "../help.ts"
import { Usage } from "../presenter.ts"
import { defaultLease, prefix, redis, type Urls } from "../redis.ts"
import { run } from "./run.ts"
import { quoted } from "../visible.ts"

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

/** The flags of which at most one can be given: they say what the command runs under. */
interface What {
  readonly name: string
  readonly lock: ReadonlyArray<string>
  readonly fair: boolean
  readonly read: boolean
  readonly write: boolean
  readonly permits: Option.Option<number>
  readonly wait: Option.Option<Duration.Duration>
  readonly conflictExitCode: Option.Option<number>
  readonly atLeast: Option.Option<Duration.Duration>
  readonly redis: Urls
}

/** What is wrong with a combination of flags each of which is right, and what to do instead. */
const problemOfFlags = (flags: What): string | undefined => {
  const { atLeast, conflictExitCode, fair, lock, name, permits, read, redis, wait, write } = flags
  const hasPermits = Option.isSome(permits)
  const kinds = [fair && "--fair", read && "--read", write && "--write", hasPermits && "--permits"].filter(Boolean)
  if (kinds.length > 1) return `${kinds.join(" and ")} exclude each other: give one of them`
  if (hasPermits && lock.length > 0)
    return "--permits takes one NAME: a semaphore cannot be acquired with locks, so leave out --lock"
  const names = [name, ...lock]
  const twice = names.find((each, i) => names.indexOf(each) < i)
  if (twice !== undefined) return `NAME and each --lock must differ: ${quoted(twice)} is given twice`
  if (redis.length > 1 && (fair || hasPermits)) {
    return `a quorum keeps no ${fair ? "queue" : "permits"}: ${fair ? "--fair" : "--permits"} needs a single Redis, by one --redis or by REDIS_URL`
  }
  if (Option.isSome(atLeast) && (read || write || hasPermits || lock.length > 0 || redis.length > 1)) {
    return "--at-least needs one lock on a single Redis: it excludes --read, --write, --permits, --lock and several --redis"
  }
  if (Option.isSome(conflictExitCode) && Option.isNone(wait)) {
    return "--conflict-exit-code needs --wait: without it redis-lock waits without limit"
  }
  return undefined
}

const checkFlags = (flags: What) => {
  const message = problemOfFlags(flags)
  return message === undefined ? Effect.void : Effect.fail(new ValidationError({ message }))
}

export const runCommand = Command.make(
  "run",
  {
    wait: duration("wait").pipe(
      Flag.withDescription("How long to wait for the lock; 0 tries once. Default: without limit"),
      Flag.optional
    ),
    lease: duration("lease", "1s").pipe(
      Flag.withDescription("How long the lock outlives redis-lock if it dies; renewed while it runs. Default: 30s"),
      Flag.withDefault(defaultLease)
    ),
    atLeast: duration("at-least").pipe(
      Flag.withDescription(
        "Keep the lock for at least this long, even if the command finishes sooner. Default: until the command ends"
      ),
      Flag.optional
    ),
    maxHold: duration("max-hold", "1ms").pipe(
      Flag.withDescription(
        "Hold the lock for at most this long: then the command is stopped, and the exit code is 70. Default: without limit"
      ),
      Flag.optional
    ),
    lock: Flag.String("lock").pipe(
      Flag.withMetavar("NAME"),
      Flag.withDescription("Another lock, acquired together with NAME: all or none. May be given several times"),
      Flag.atLeast(0)
    ),
    fair: toggle(
      "fair",
      "First come, first served, among all processes. Default: usually the process that has waited longest"
    ),
    read: toggle("read", "The read side of a read-write lock: shared with other readers"),
    write: toggle("write", "The write side of a read-write lock: shared with nobody"),
    permits: wholeNumber("permits", 1, 2_147_483_647).pipe(
      Flag.withDescription(
        "Hold one of N permits instead of a lock: at most N commands at once. Creates the semaphore NAME with N permits if it does not exist; an existing one keeps its total"
      ),
      Flag.optional
    ),
    conflictExitCode: wholeNumber("conflict-exit-code", 0, 255).pipe(
      Flag.withDescription("The exit code when the wait timed out. Default: 75"),
      Flag.optional
    ),
    timeout: duration("timeout", "1ms").pipe(
      Flag.withDescription(
        "How long the command may run: then SIGTERM, 5s later SIGKILL, and exit code 124. Default: without limit"
      ),
      Flag.optional
    ),
    verbose: toggle(
      "verbose",
      "Report on stderr which owner holds the lock, what was acquired and after how long, and when it was released"
    ),
    hideRedisUrl: toggle(
      "hide-redis-url",
      "Start the command without REDIS_URL and REDIS_QUORUM, which may contain a password"
    ),
    prefix,
    redis,
    // behind the flags: a flag without its value takes the next word, and is what is wrong when a word is missing
    name: Argument.String("NAME").pipe(Argument.withDescription("The name of the lock, the same on all machines")),
    command: Argument.String("COMMAND").pipe(Argument.withDescription("The program to run, looked up on the PATH")),
    args: Argument.String("ARGS").pipe(Argument.withDescription("Its arguments, passed unchanged"), Argument.variadic())
  },
  ({ fair, lock, read, write, ...options }) =>
    run({ ...options, more: lock, kind: fair ? "fair" : read ? "read" : write ? "write" : "plain" })
).pipe(
  Command.validate(({ args }) => commandBehindDashes(args)),
  Command.validate((flags) => checkFlags(flags)),
  Command.annotate(Usage, "redis-lock run [FLAGS] NAME -- COMMAND ARGS..."),
  Command.withShortDescription("Run a command under a lock"),
  Command.withDescription(
    paragraphs(`
Waits for the lock NAME, runs COMMAND under it, and exits with the command's exit code.

redis-lock passes SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 and the other signals that would end it on to the
command and all its children. If the lock is lost, they get SIGTERM and, before the lease ends, SIGKILL. No shell is
involved unless you name one. As the first process of a container it needs an init, which reaps the command's orphans:
docker run --init.

The command inherits redis-lock's environment, also REDIS_URL with its password unless --hide-redis-url is given, plus:
  REDIS_LOCK_NAME    the lock's name
  REDIS_LOCK_TOKEN   the fencing token: higher for every grant of that name, with --read that of the last
                     writer; not with --permits
  REDIS_LOCK_OWNER   the owner, as redis-lock ls shows it; not with --permits
  REDIS_LOCK_TOKENS  with --lock: all names and their tokens, as a JSON object
  REDIS_LOCK_PERMIT  with --permits: the id of the permit

Exit codes, besides the command's own:
  64     bad usage
  69     Redis cannot be reached, or refuses
  70     the lock was lost: the command was stopped, ended too late, or was not started
  75     the wait timed out, unless --conflict-exit-code says otherwise
  124    the command ran longer than --timeout, and was stopped
  126    the command cannot be executed
  127    the command was not found
  128+n  signal n killed the command, or arrived while redis-lock waited for the lock`)
  ),
  Command.withExamples([
    { command: "redis-lock run --wait 10s device:42 -- ./calibrate.sh --full" },
    { command: "redis-lock run --wait 0 db:migrate -- sh -c 'make backup && make migrate'" },
    { command: "redis-lock run --wait 0 --conflict-exit-code 0 --at-least 5m nightly-report -- ./report.sh" },
    { command: "redis-lock run --permits 3 --timeout 10m thumbnails -- ./render.sh" }
  ])
)
