/**
 * The loads of the worlds that judge liveness: for each, who uses what, and how often a waiter may be passed over.
 */
import { Deferred, Effect, Schedule, Schema } from "effect"
import {
  CountDownLatch,
  FairLock,
  FencedLock,
  LeaderElection,
  Lock,
  MultiLock,
  NonReentrantLock,
  PermitSemaphore,
  ReadWriteLock,
  type RedisLock,
  Semaphore,
  SpinLock
} from "effect-redis-lock"
import { between } from "./network.ts"
import type { Foreigner, LivenessKind, Role, Shape, Use } from "./liveness.ts"

/** A process of several fibers has eight sections in a row that it hands over to itself, and the one before them. */
const inARow = ({ fibers }: Shape): number => (fibers === 1 ? 1 : 9)

/** Each process that waits goes first once; one that does not hear messages yet misses its first turn. */
export const turnsOfOthers = (shape: Shape): number =>
  (Math.ceil(shape.fibers / inARow(shape)) + 1) * (shape.processes - 1) * inARow(shape)

const never = (): number => 0
const anyNumber = (): number => Number.POSITIVE_INFINITY

const whole = (name: string): Use => ({ name, of: 1, takes: 1 })

const holder = (lock: Lock.Lock<RedisLock.RedisLock, any, any>, role?: Partial<Role>): Role => ({
  uses: [whole(lock.name)],
  passes: turnsOfOthers,
  run: (section) => Lock.withLock(section, lock),
  ...role
})

/** Longer than any section: a process has one section in a row then. */
const keeping = (lock: Lock.Lock<RedisLock.RedisLock, any, any>, passes: Role["passes"]): Role =>
  holder(lock, {
    passes,
    run: (section, { sectionMillis }) => Lock.withLock(section, lock, { minHold: 2 * sectionMillis })
  })

/** As {@link turnsOfOthers}, with turns of one section. */
const singleTurnsOfOthers = ({ fibers, processes }: Shape): number => (fibers + 1) * (processes - 1)

/** Far more readers than there are fibers. */
const readers = 1000
const { readLock, writeLock } = ReadWriteLock.make("rw")
const reading = { name: "rw", of: readers, takes: 1 }
const writing = { name: "rw", of: readers, takes: readers }

/** Each process has a turn on either side; with one of its readers all that wait are let in. */
export const turnsOfBothSides = (shape: Shape): number => 2 * (turnsOfOthers(shape) + shape.processes * shape.fibers)

const reader: Role = holder(readLock, { uses: [reading], passes: turnsOfBothSides, isQueued: false })
const writer: Role = holder(writeLock, { uses: [writing], passes: turnsOfBothSides })

/** A writer that goes on reading. */
const downgrading: Role = {
  uses: [writing],
  passes: turnsOfBothSides,
  isQueued: false,
  run: (section, { random, sectionMillis }) =>
    Effect.andThen(Effect.sleep(random() * sectionMillis), Lock.withLock(section, readLock)).pipe(
      Lock.withLock(writeLock)
    )
}

/** Two fibers of one owner: one writes until the other has read. */
const sharing: Role = {
  uses: [writing],
  passes: anyNumber,
  isQueued: false,
  run: (section, { random, sectionMillis }) =>
    Effect.gen(function* () {
      const hasRead = yield* Deferred.make<void>()
      yield* Effect.all(
        [
          Effect.andThen(section, Deferred.await(hasRead)).pipe(Lock.withLock(writeLock)),
          Effect.andThen(
            Effect.sleep(random() * 2 * sectionMillis),
            Deferred.succeed(hasRead, undefined).pipe(Lock.withLock(readLock))
          )
        ],
        { concurrency: "unbounded", discard: true }
      )
    }).pipe(
      Lock.withOwner,
      // it cannot write while it reads
      Effect.catchTag("LockReentered", () => Effect.void)
    )
}

/**
 * A turn of the member that was taken, and one of each; in each of them, another process may have its turn. Once it may give up a turn, as
 * another MultiLock keeps the next member for longer than it waits.
 */
export const turnsOfMembers = (shape: Shape, members: number): number =>
  2 * (members + 1) * (turnsOfOthers(shape) + inARow(shape))

const several = (...names: ReadonlyArray<string>): Role =>
  holder(MultiLock.make(names), {
    uses: names.map(whole),
    passes: (shape) => turnsOfMembers(shape, names.length),
    isQueued: false
  })

/** A lock that is also a member of MultiLocks: they hand it over as every other holder does. */
export const turnsOfOthersBeside = (shape: Shape): number => turnsOfOthers(shape) + inARow(shape)

const beside = (name: string): Role => holder(Lock.make(name), { passes: turnsOfOthersBeside })

/** As many as are let in before permits are kept for the oldest waiter, and one section of each that waited before. */
export const permitPasses = ({ fibers, processes, sectionMillis }: Shape): number =>
  3 * Math.ceil(300 / sectionMillis) + 6 * processes * fibers

const anonymous = Semaphore.make("anonymous", { permits: 3 })
const leased = PermitSemaphore.make("permits", { permits: 3 })

const permits = (name: "anonymous" | "permits", takes: number, role?: Partial<Role>): Role => ({
  uses: [{ name, of: 3, takes }],
  passes: takes === 1 ? permitPasses : anyNumber,
  isQueued: false,
  run: (section) =>
    name === "anonymous"
      ? Semaphore.withPermits(section, anonymous, takes)
      : PermitSemaphore.withPermits(section, leased, takes),
  ...role
})

/** Where new readers enter while others read, a writer may wait for as long as they come. */
const readersFirst = ReadWriteLock.make("rw", { preference: "reader" })

/** Readers wait behind a writer that asked before them. */
const patientReader: Role = { ...reader, passes: anyNumber, yieldsTo: ({ uses }) => uses[0]!.takes === readers }

/** Redisson's client: its own keys, and no message when a writer goes on reading. */
const javaDowngrades: Foreigner = ({ note, now, random, server, takes, until }) =>
  Effect.gen(function* () {
    const owner = "11111111-1111-4111-8111-111111111111:7"
    const [key, hold, channel] = ["rw", `{rw}:${owner}:rwlock_timeout:1`, "redisson_rwlock:{rw}"]
    const leaseMillis = 30_000
    const stop = server.db.listen(channel, () => {})
    while (now() < until) {
      yield* Effect.sleep(between(random, 0, 1000))
      while (server.db.exists(key)) yield* Effect.sleep(1)
      const { db } = server
      note("Java writes")
      const fields = db.open(key, "hash")
      fields.set("mode", "write").set(`${owner}:write`, "1")
      db.expire(key, leaseMillis)
      takes("rw", readers)
      yield* Effect.sleep(between(random, 100, 1500))
      fields.set(owner, "1").set("mode", "read")
      fields.delete(`${owner}:write`)
      db.set(hold, "string", "1", leaseMillis)
      note("Java goes on reading")
      takes("rw", 1 - readers)
      yield* Effect.sleep(between(random, 2500, 6000))
      fields.delete(owner)
      db.delete(hold)
      if (fields.size === 1) {
        db.delete(key)
        db.publish(channel, "0")
      }
      note("Java ends")
      takes("rw", -1)
    }
    stop()
  })

/** Asks after each pause of its schedule. */
/** The longest pause between two requests of a process: its first waiter asks for all, by its own schedule. */
const longestPauseMillis = 3000

const spinning = (pausesMillis: number): Role =>
  holder(SpinLock.make("a", { schedule: Schedule.spaced(pausesMillis) }), {
    passes: anyNumber,
    pausesMillis: longestPauseMillis
  })

const latch = CountDownLatch.make("latch")

/** Waits until the latch is open. */
const awaiting: Role = {
  uses: [{ name: "latch", of: 1, takes: 0 }],
  passes: anyNumber,
  isQueued: false,
  run: (section) => Effect.andThen(CountDownLatch.await(latch), section)
}

/** Closes the latch, opens it, and leaves it open until everybody must have seen it. */
const counting: Role = {
  uses: [{ name: "latch", of: 1, takes: 1 }],
  passes: anyNumber,
  isQueued: false,
  isHopeless: true,
  run: (section, { random }) =>
    Effect.gen(function* () {
      const count = between(random, 1, 5)
      yield* CountDownLatch.trySetCount(latch, count)
      yield* section
      for (let i = 0; i < count; i++) yield* CountDownLatch.countDown(latch)
      yield* Effect.sleep(between(random, 2500, 4000))
    })
}

const election = LeaderElection.make("leader", { value: Schema.String })

const leading: Role = {
  uses: [whole("leader")],
  passes: anyNumber,
  isQueued: false,
  run: (section) => LeaderElection.whileLeader(section, election, { proclaim: "me" })
}

/** Asks for more permits than there are. */
const hopeless = (name: "anonymous" | "permits"): Role =>
  permits(name, 4, {
    isHopeless: true,
    run: (section) =>
      name === "anonymous"
        ? Semaphore.withPermits(section, anonymous, 4, { waitTime: "1 minute" })
        : PermitSemaphore.withPermits(section, leased, 4, { waitTime: "1 minute" })
  })

export const livenessKinds: Readonly<Record<string, LivenessKind>> = {
  "a plain lock": { roles: [holder(Lock.make("a"))] },
  "a fenced lock": { roles: [holder(FencedLock.make("fenced"))] },
  "a lock that is not reentrant": { roles: [holder(NonReentrantLock.make("a"))] },
  "a fair lock": { roles: [holder(FairLock.make("a"), { passes: never })] },
  "a plain lock that its minHold keeps": { roles: [keeping(Lock.make("a"), singleTurnsOfOthers)] },
  "a fair lock that its minHold keeps": { roles: [keeping(FairLock.make("a"), never)] },
  writers: { roles: [holder(writeLock)] },
  "readers and writers": { roles: [reader, writer] },
  "writers that go on reading, beside readers": { roles: [reader, writer, downgrading] },
  "owners that share": { roles: [reader, sharing] },
  "several locks whose members are in steady use": {
    roles: [beside("a"), beside("b")],
    alone: several("a", "b")
  },
  "several locks in each order": {
    roles: [several("a", "b"), several("b", "a"), several("b", "c"), beside("b")]
  },
  "a member of several locks in steady use, far away": {
    roles: [several("n", "m")],
    alone: holder(Lock.make("n")),
    isFarAway: true
  },
  "readers that waited longer than writers, while Java goes on reading": {
    roles: [patientReader, holder(writeLock, { uses: [writing], passes: anyNumber })],
    foreigner: javaDowngrades
  },
  "readers and writers without preference": {
    roles: [
      { ...reader, run: (section) => Lock.withLock(section, readersFirst.readLock) },
      holder(readersFirst.writeLock, { uses: [writing], passes: anyNumber })
    ]
  },
  "locks that spin": { roles: [spinning(20), spinning(700), spinning(longestPauseMillis)] },
  "locks that spin, beside plain ones": {
    roles: [
      spinning(20),
      spinning(longestPauseMillis),
      holder(Lock.make("a"), { passes: anyNumber, pausesMillis: longestPauseMillis })
    ]
  },
  latches: { roles: [awaiting], alone: counting },
  leaders: { roles: [leading] },
  "anonymous permits": {
    roles: [permits("anonymous", 1), permits("anonymous", 1), permits("anonymous", 2)],
    permits: { anonymous: 3 }
  },
  "leased permits": {
    roles: [permits("permits", 1), permits("permits", 1), permits("permits", 3)],
    permits: { permits: 3 }
  },
  "anonymous permits, beside a request for more than there are": {
    roles: [permits("anonymous", 1), permits("anonymous", 2)],
    alone: hopeless("anonymous"),
    permits: { anonymous: 3 }
  },
  "leased permits, beside a request for more than there are": {
    roles: [permits("permits", 1), permits("permits", 2)],
    alone: hopeless("permits"),
    permits: { permits: 3 }
  },
  "a lock on three servers, of which one fails": {
    roles: [holder(Lock.make("a"), { passes: anyNumber })],
    servers: 3,
    faults: ["members"]
  },
  "a plain lock whose connections break": { roles: [holder(Lock.make("a"))], faults: ["break"] },
  "writers that go on reading, beside readers, whose connections break": {
    roles: [reader, writer, downgrading],
    faults: ["break"]
  },
  "a plain lock and failovers": { roles: [holder(Lock.make("a"))], faults: ["failover"] },
  "a fenced lock and failovers": { roles: [holder(FencedLock.make("fenced"))], faults: ["failover"] },
  "a fair lock and failovers": { roles: [holder(FairLock.make("a"), { passes: anyNumber })], faults: ["failover"] },
  "several locks and failovers": { roles: [several("a", "b"), beside("a"), beside("b")], faults: ["failover"] },
  "readers and writers and failovers": { roles: [reader, writer], faults: ["failover"] },
  "anonymous permits and failovers": {
    roles: [permits("anonymous", 1)],
    faults: ["failover"],
    permits: { anonymous: 3 }
  },
  "leased permits and failovers": { roles: [permits("permits", 1)], faults: ["failover"], permits: { permits: 3 } },
  "a plain lock whose commands fail": { roles: [holder(Lock.make("a"))], faults: ["errors"] },
  "a fair lock whose commands fail": { roles: [holder(FairLock.make("a"), { passes: never })], faults: ["errors"] },
  "readers and writers whose commands fail": { roles: [reader, writer, downgrading], faults: ["errors"] },
  "several locks whose commands fail": { roles: [several("a", "b"), beside("a"), beside("b")], faults: ["errors"] },
  "leased permits whose commands fail": {
    roles: [permits("permits", 1), permits("permits", 2)],
    faults: ["errors"],
    permits: { permits: 3 }
  },
  "a plain lock whose slot moves": { roles: [holder(Lock.make("a"))], faults: ["slot"] },
  "a fair lock whose slot moves": { roles: [holder(FairLock.make("a"), { passes: never })], faults: ["slot"] },
  "anonymous permits whose slot moves": {
    roles: [permits("anonymous", 1), permits("anonymous", 2)],
    faults: ["slot"],
    permits: { anonymous: 3 }
  }
}
