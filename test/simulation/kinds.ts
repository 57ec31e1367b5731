/**
 * The kinds of lock, and the workloads of the worlds that use them: alone, several together, and on quorums.
 */
import { Duration, Effect, Schema } from "effect"
import {
  FairLock,
  FencedLock,
  LeaderElection,
  Lock,
  LockTimeout,
  MultiLock,
  NonReentrantLock,
  PermitSemaphore,
  ReadWriteLock,
  RedLock,
  type RedisLock,
  Semaphore,
  SpinLock
} from "effect-redis-lock"
import { Members, type Side, type Workload } from "./workload.ts"
import type { WorldOptions } from "./world.ts"

const holder = (
  lock: Lock.Lock<RedisLock.RedisLock, any>,
  share: Side["share"] = "nobody",
  isReentrant = true
): Side => ({
  names: [lock.name],
  share,
  isReentrant,
  run: (section, options) => Effect.flatMap(Lock.currentHolding(lock), section).pipe(Lock.withLock(lock, options))
})

/** All or nothing; each member has tokens of its own. */
const all = (lock: Lock.Lock<RedisLock.RedisLock, any, any>, names: ReadonlyArray<string>): Side => ({
  names,
  share: "nobody",
  isReentrant: true,
  run: (section, options) =>
    Effect.flatMap(Lock.currentHolding(lock), (holding) =>
      section({ ensureHeld: holding.ensureHeld, renew: (leaseTime) => holding.renew(leaseTime) })
    ).pipe(Lock.withLock(lock, options))
})

const several = (...members: ReadonlyArray<string | Lock.Lock<RedisLock.RedisLock, any>>): Side => {
  const locks = members.map((member) => (typeof member === "string" ? Lock.make(member) : member))
  return all(
    MultiLock.make(locks),
    locks.map(({ name }) => name)
  )
}

const places = ["a", "b", "c"]

/** Each lock on a server of its own. */
const apart = (...names: ReadonlyArray<string>): Side => ({
  names,
  share: "nobody",
  isReentrant: true,
  run: (section, options) =>
    Effect.flatMap(Members, (members) => {
      const locks = names.map((name) => Lock.provide(Lock.make(name), members[places.indexOf(name)]!))
      return all(MultiLock.make(locks), names).run(section, options)
    })
})

/** One lock on all servers, which are asked impatiently. */
const red = (name: string): Side => ({
  names: [name],
  share: "nobody",
  isReentrant: true,
  run: (section, options) =>
    Effect.flatMap(Members, (members) => {
      const locks = members.map((member) => Lock.provide(Lock.make(name), member))
      return holder(RedLock.make(locks, { memberTimeout: 50, retryDelay: 5 })).run(section, options)
    })
})

const permits = (permits: number): Side => ({
  names: ["permits"],
  share: { permits, of: 3 },
  isReentrant: false,
  run: (section, options) =>
    PermitSemaphore.withPermits(section({}), PermitSemaphore.make("permits", { permits: 3 }), permits, options)
})

const anonymous = (permits: number): Side => ({
  names: ["anonymous"],
  share: { permits, of: 3 },
  isReentrant: false,
  run: (section, { waitTime }) =>
    Semaphore.withPermits(
      section({}),
      Semaphore.make("anonymous", { permits: 3 }),
      permits,
      waitTime === undefined ? {} : { waitTime }
    )
})

const election = LeaderElection.make("leader", { value: Schema.String })

/** Encoding text cannot fail. */
const encoded = <A, E, R>(self: Effect.Effect<A, E | Schema.SchemaError, R>) =>
  Effect.catchIf(self, Schema.isSchemaError, Effect.die)

/** Runs a section as the leader; gives up the campaign after the wait time. */
const leader = (
  lead: (
    section: (leadership: LeaderElection.Leadership<string>) => ReturnType<Side["run"]>
  ) => ReturnType<Side["run"]>,
  ensureLeading = (leadership: LeaderElection.Leadership<string>) => leadership.ensureLeading
): Side => ({
  names: [election.name],
  share: "nobody",
  isReentrant: false,
  run: (section, { waitTime = Infinity }) =>
    Effect.suspend(() => {
      let isElected = false
      const led = lead((leadership) => {
        isElected = true
        const renew = () => encoded(leadership.proclaim("again"))
        return section({ token: leadership.term, ensureHeld: ensureLeading(leadership), renew })
      })
      const waited = Duration.max(Duration.fromInputUnsafe(waitTime), Duration.millis(500))
      const givenUp = Effect.andThen(Effect.sleep(waited), () =>
        isElected ? Effect.never : Effect.fail(new LockTimeout({ lock: election.name, waited, holder: undefined }))
      )
      return Effect.raceFirst(led, givenUp)
    })
})

const campaigning = leader(
  (section) =>
    encoded(
      Effect.scoped(
        Effect.flatMap(LeaderElection.campaign(election, { proclaim: "first" }), (leadership) =>
          Effect.raceFirst(section(leadership), leadership.awaitLost)
        )
      )
    ),
  // it has to check by itself before each step, and then waits for its end
  ({ ensureLeading }) => Effect.catch(ensureLeading, () => Effect.never)
)

const whileLeading = leader((section) =>
  encoded(
    Effect.flatMap(LeaderElection.currentLeadership(election), section).pipe(
      LeaderElection.whileLeader(election, { proclaim: "first" })
    )
  )
)

const readersAndWriters = (preference: "writer" | "reader"): ReadonlyArray<Side> => {
  const { readLock, writeLock } = ReadWriteLock.make("rw", { preference })
  return [holder(writeLock), holder(readLock, "readers")]
}

const different = (): ReadonlyArray<Side> => {
  const { readLock, writeLock } = ReadWriteLock.make("rw")
  return [
    several(FairLock.make("fair"), writeLock, SpinLock.make("spin")),
    holder(readLock, "readers"),
    holder(FairLock.make("fair"))
  ]
}

/** The workload of a kind, and the numbers of servers it runs on. */
export interface Kind extends Workload {
  readonly servers: ReadonlyArray<number>
}

export const kinds: Record<string, Kind> = {
  "plain locks and one that spins": { sides: [holder(Lock.make("a")), holder(SpinLock.make("b"))], servers: [1, 3, 5] },
  "fenced locks": { sides: [holder(FencedLock.make("fenced"))], servers: [1], keepsData: true },
  "locks that are not reentrant": {
    sides: [holder(NonReentrantLock.make("once"), "nobody", false)],
    servers: [1, 3]
  },
  "readers and writers": { sides: readersAndWriters("writer"), servers: [1, 3, 5] },
  "readers and writers without preference": { sides: readersAndWriters("reader"), servers: [1, 3] },
  "several locks at once": { sides: [several("a", "b"), several("c", "b"), holder(Lock.make("a"))], servers: [1, 3] },
  "several locks of different kinds": {
    sides: different(),
    servers: [1]
  },
  "several locks on different servers": { sides: [apart("a", "b", "c"), apart("c", "a"), apart("b")], servers: [3] },
  "impatient quorums": { sides: [red("a"), red("b")], servers: [3, 5] },
  "fair locks": { sides: [holder(FairLock.make("fair"))], servers: [1] },
  "fair locks that are not reentrant": {
    sides: [holder(NonReentrantLock.make("fair", { fair: true }), "nobody", false)],
    servers: [1]
  },
  leaders: { sides: [campaigning, whileLeading], servers: [1, 3] },
  permits: { sides: [permits(1), permits(2), permits(3)], servers: [1] },
  "anonymous permits": { sides: [anonymous(1), anonymous(2), anonymous(3)], servers: [1], keepsData: true },
  latches: { sides: [], hasLatch: true, servers: [1], keepsData: true }
}

type Small = readonly [title: string, world: Omit<WorldOptions, "seed">]

const small = (kind: string, title: string, world: Pick<WorldOptions, "servers" | "failover">): Small => {
  const { hasLatch = false, keepsData = false, sides } = kinds[kind]!
  return [`${kind}, ${title}`, { ...world, sides, hasLatch, keepsData, isSmall: true }]
}

/** Small worlds of several servers: quorums, and masters whose replicas lag and take over. */
export const smallWorlds: ReadonlyArray<Small> = [
  ...Object.entries(kinds).flatMap(([kind, { servers }]) =>
    servers.filter((count) => count > 1).map((count) => small(kind, `briefly, on ${count} servers`, { servers: count }))
  ),
  // what is renewed all the time, and not acknowledged, may be lost; a latch has no holders
  ...Object.entries(kinds)
    .filter(([kind, { servers }]) => servers.includes(1) && !["leaders", "latches"].includes(kind))
    .map(([kind]) => small(kind, "acknowledged by a replica", { servers: 1, failover: "acknowledged" })),
  // the tokens of these rise all the same
  ...["plain locks and one that spins", "locks that are not reentrant", "fair locks", "several locks at once"].map(
    (kind) => small(kind, "not acknowledged by a replica", { servers: 1, failover: "losing" })
  )
]

/** Kinds of faults that are injected beside the usual ones. */
const moreFaults = (
  kind: string
): Record<string, Pick<WorldOptions, "errors" | "nodeSkewMillis" | "stalls" | "sharesProcesses">> => ({
  "whose commands fail": { errors: true },
  // servers that take over for each other may differ by less than a second; leased permits end by times that move with them
  "whose slot moves": { nodeSkewMillis: kind === "permits" ? 0 : 400 },
  "whose processes stop": { stalls: true },
  "of two clients in each process": { sharesProcesses: true }
})

/** Worlds of each of these. A slot is a matter of one server, and a latch has no holders. */
export const faultyWorlds: ReadonlyArray<Small> = Object.entries(kinds).flatMap(([kind, { servers, ...workload }]) =>
  Object.entries(moreFaults(kind))
    .filter(([, faults]) => faults.nodeSkewMillis === undefined || servers.includes(1))
    .filter(([, faults]) => faults.sharesProcesses !== true || workload.hasLatch !== true)
    .map(([title, faults]): Small => [`${kind}, ${title}`, { ...workload, ...faults, servers: servers[0]! }])
)
