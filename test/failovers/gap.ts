/**
 * `pnpm failovers:gap [failovers] [quick]`: four processes with default options take turns on locks and permits, each with two fibers for each
 * kind, while Sentinel replaces the master as planned, ten times by default: for how long nobody was let in, from the command until ten seconds
 * after the old master has become a replica, and whether all permits are there at the end. The sentinels have Redis's default periods; with
 * `quick` those of the tests, with which the old master becomes a replica a second later instead of ten. Ends with 1 if there is a gap of more
 * than three seconds, or if a permit is missing; then it also prints what the clients waited for meanwhile.
 */
import { Effect, References } from "effect"
import { PermitSemaphore, Semaphore } from "effect-redis-lock"
import { loadavg } from "node:os"
import { start } from "../faults/processes.ts"
import { client } from "../kit/clients.ts"
import { eventually } from "../kit/eventually.ts"
import { bare } from "../kit/server/bareRedis.ts"
import { ask, openSite, type Site } from "./site.ts"
import {
  type Kind,
  kindNames,
  now,
  permits,
  permitSemaphore,
  semaphore,
  type Stall,
  type Turn,
  watchStalls
} from "./turns.ts"

const failovers = Number(process.argv[2] ?? 10)
const isQuick = process.argv[3] === "quick"
if (!Number.isInteger(failovers) || failovers < 1 || process.argv.length > (isQuick ? 4 : 3)) {
  console.error("usage: pnpm failovers:gap [failovers] [quick]")
  process.exit(2)
}

const processes = 4
const load = { fibers: 2, sectionMillis: 5, pauseMillis: 5 }
const longestGapMillis = 3000
/** How long the clients go on after the old master has become a replica. */
const afterwards = "10 seconds"

/** What a server said of itself when it was last asked. */
interface Sample {
  readonly at: number
  readonly said: string
}

/** Notes each change of each server's role, and who holds the locks there, until the scope closes. */
const sampled = Effect.fnUntraced(function* (site: Site, prefix: string) {
  const samples: Array<Sample> = []
  for (const server of site.servers) {
    const redis = yield* bare(server)
    let before = ""
    const look = async () => {
      const [role] = (await redis.call("ROLE")) as ReadonlyArray<unknown>
      const held = await Promise.all([
        redis.hgetall(`${prefix}:lock`),
        redis.pttl(`${prefix}:lock`),
        redis.hgetall(`${prefix}:read-write`),
        redis.get(`${prefix}:semaphore`)
      ])
      const said = `${server.port} is ${String(role)}: ${JSON.stringify(held)}`
      if (role === "master" || !before.includes(String(role))) samples.push({ at: now(), said })
      before = said
    }
    yield* Effect.forkScoped(
      Effect.forever(Effect.andThen(Effect.ignore(Effect.tryPromise(look)), Effect.sleep("200 millis")))
    )
  }
  return samples
})

interface Gap {
  readonly from: number
  readonly to: number
}

/** The longest time of a window in which nobody was inside. */
const longestGap = (turns: ReadonlyArray<Turn>, from: number, to: number): Gap => {
  let [longest, free]: [Gap, number] = [{ from, to: from }, from]
  const consider = (next: number) => {
    if (next - free > longest.to - longest.from) longest = { from: free, to: next }
  }
  const sections = turns
    .flatMap(({ endedAt, enteredAt }) => (enteredAt === undefined ? [] : [{ enteredAt, endedAt }]))
    .filter(({ endedAt, enteredAt }) => endedAt > from && enteredAt < to)
    .toSorted((one, other) => one.enteredAt - other.enteredAt)
  for (const { endedAt, enteredAt } of sections) {
    consider(enteredAt)
    // a section is short; what it took longer, it waited for its release
    free = Math.max(free, Math.min(endedAt, enteredAt + load.sectionMillis))
  }
  consider(to)
  return longest
}

/** The rest of a line that tells of a gap. */
const told = (
  { from, to }: Gap,
  kind: Kind,
  tellers: ReadonlyArray<{ readonly turns: ReadonlyArray<Turn>; readonly stalls: ReadonlyArray<Stall> }>,
  own: ReadonlyArray<Stall>,
  samples: ReadonlyArray<Sample>
) => {
  const at = (time: number | undefined) => (time === undefined ? "never" : `${((time - from) / 1000).toFixed(2)} s`)
  const around = ({ at }: { readonly at: number }) => at > from - 1000 && at < to + 500
  const lines = [...tellers, { turns: [], stalls: own }].flatMap(({ stalls, turns }, number) => [
    ...turns
      .filter((turn) => turn.kind === kind && turn.endedAt > from - 50 && turn.askedAt < to)
      .map(
        ({ askedAt, endedAt, enteredAt, failure }) =>
          `process ${number} asked at ${at(askedAt)}, entered at ${at(enteredAt)}, ended at ${at(endedAt)}${failure ? `: ${failure}` : ""}`
      ),
    ...stalls
      .filter(around)
      .map((stall) => `process ${number} stood still for ${stall.millis.toFixed(0)} ms until ${at(stall.at)}`)
  ])
  return [...lines, ...samples.filter(around).map(({ at: time, said }) => `${at(time)}: ${said}`)].join("\n    ")
}

const failover = Effect.fnUntraced(function* (site: Site, prefix: string) {
  const own: Array<Stall> = []
  yield* Effect.acquireRelease(
    Effect.sync(() => watchStalls(own)),
    (stop) => Effect.sync(stop)
  )
  const takers = yield* Effect.forEach(Array.from({ length: processes }), () =>
    start("turns", { locks: site.url, prefix, ...load })
  )
  for (const taker of takers) yield* taker.told("ready")
  const samples = yield* sampled(site, prefix)
  yield* Effect.sleep("2 seconds")
  let [asked, promoted, until] = [0, 0, 0]
  yield* site.promote({
    begins: Effect.gen(function* () {
      const before = yield* site.master
      const others = site.servers.filter((server) => server !== before)
      asked = now()
      yield* eventually(
        "a replica says that it is a master",
        Effect.forEach(others, (other) => ask(other, (redis) => redis.call("ROLE"))),
        (roles) => roles.some((role) => (role as ReadonlyArray<unknown>)[0] === "master")
      ).pipe(
        Effect.tap(() => Effect.sync(() => (promoted = now()))),
        Effect.forkScoped
      )
    }),
    succeeded: Effect.gen(function* () {
      until = now()
      yield* Effect.sleep(afterwards)
    })
  })
  const end = now()
  for (const taker of takers) yield* taker.signal("SIGTERM")
  const totals = yield* Effect.forEach(takers, (taker) => taker.told("ended"))
  const all = totals.flatMap(({ turns }) => turns)
  const gaps = kindNames.map((kind) => {
    const turns = all.filter((turn) => turn.kind === kind && turn.endedAt > asked)
    const waits = turns.map(({ askedAt, endedAt, enteredAt }) => (enteredAt ?? endedAt) - askedAt)
    return { kind, gap: longestGap(turns, asked, end), waitMillis: Math.max(...waits) }
  })
  const { run } = yield* client(site)
  const left = yield* Effect.all([
    run(Semaphore.availablePermits(semaphore(prefix))),
    run(PermitSemaphore.availablePermits(permitSemaphore(prefix)))
  ])
  const failures = new Map<string, number>()
  for (const { failure } of all) if (failure) failures.set(failure, (failures.get(failure) ?? 0) + 1)
  console.log(
    `promoted after ${((promoted - asked) / 1000).toFixed(1)} s, the old master a replica after ${((until - asked) / 1000).toFixed(1)} s; ` +
      `${all.length} turns; failures: ${[...failures].map(([reason, count]) => `${count} ${reason}`).join(", ") || "none"}; ` +
      `permits left: ${left.join(" and ")} of ${permits}; load ${loadavg()[0]!.toFixed(1)}`
  )
  console.log(
    `  ${gaps
      .map(
        ({ gap, kind, waitMillis }) =>
          `${kind}: gap ${((gap.to - gap.from) / 1000).toFixed(2)} s, longest wait ${(waitMillis / 1000).toFixed(2)} s`
      )
      .join("; ")}`
  )
  const problems: Array<string> = []
  if (left.some((free) => free !== permits)) problems.push(`${left.join(" and ")} of ${permits} permits are left`)
  for (const { gap, kind } of gaps) {
    if (gap.to - gap.from <= longestGapMillis) continue
    problems.push(`nobody was let into the ${kind} for ${((gap.to - gap.from) / 1000).toFixed(2)} s`)
    console.log(
      `  ${kind}, from ${((gap.from - asked) / 1000).toFixed(2)} s after the command:\n    ${told(gap, kind, totals, own, samples)}`
    )
  }
  return { gaps: gaps.map(({ gap, kind }) => ({ kind, millis: gap.to - gap.from })), problems }
}, Effect.scoped)

const program = Effect.gen(function* () {
  const site = yield* openSite
  if (!isQuick) {
    for (const sentinel of site.sentinels) {
      const periods = ["INFO-PERIOD", 10_000, "PUBLISH-PERIOD", 2000, "PING-PERIOD", 1000]
      yield* ask(sentinel, (redis) => redis.call("SENTINEL", "DEBUG", ...periods))
    }
  }
  const outcomes = []
  for (let number = 1; number <= failovers; number++) {
    process.stdout.write(`failover ${number}: `)
    outcomes.push(yield* failover(site, `failover ${number}`))
  }
  return outcomes
})

const outcomes = await Effect.runPromise(
  Effect.scoped(program).pipe(Effect.provideService(References.MinimumLogLevel, "None"))
)
for (const kind of kindNames) {
  const millis = outcomes
    .flatMap(({ gaps }) => gaps)
    .filter((gap) => gap.kind === kind)
    .map((gap) => gap.millis)
    .toSorted((one, other) => one - other)
  const seconds = (index: number) => (millis[index]! / 1000).toFixed(2)
  console.log(
    `${kind}: longest gap ${seconds(millis.length - 1)} s, median ${seconds(Math.floor(millis.length / 2))} s`
  )
}
const problems = outcomes.flatMap(({ problems }, index) =>
  problems.map((problem) => `failover ${index + 1}: ${problem}`)
)
for (const problem of problems) console.error(problem)
console.log(problems.length === 0 ? "no gap above 3 seconds, and no permit is missing" : "see above")
process.exit(problems.length === 0 ? 0 : 1)
