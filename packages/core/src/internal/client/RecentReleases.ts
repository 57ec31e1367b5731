/**
 * The releases that this client has sent lately. When it is connected again, another server may answer: a replica that has taken over, and
 * has not heard of the last ones. For that server their owners still hold, so they are sent once more.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type { Store } from "../store/Store.ts"
import * as fairLock from "../store/operations/fairLock.ts"
import * as lock from "../store/operations/lock.ts"
import * as multiLock from "../store/operations/multiLock.ts"
import * as readWriteLock from "../store/operations/readWriteLock.ts"
import { StoreCommand } from "../store/operations/StoreOperation.ts"
import { ExpiringMap } from "../time/ExpiringMap.ts"
import type { LockClient } from "./LockClient.ts"
import { firstPauseMillis, isFinal, longestPauseMillis, mayHaveRun } from "../store/failures.ts"

/** Longer than it takes until another master has taken over: Sentinel waits for 30 seconds by default, while an isolated master still answers. */
const spanMillis = 60_000

/**
 * Limits to the memory that they take, and to what is sent at once to a server that has just taken over: when there are that many, the latest
 * are kept. One that gives back many permits counts as one for each ten.
 */
const most = 10_000
const mostKept = 5000
const argumentsPerRelease = 10

/** How many are under way at once: whatever else is sent meanwhile, and whoever waits for it, is behind these alone. */
const mostAtOnce = 100

/** A release that was sent. Thousands of them grow old: it refers to no more than sending it again takes. */
class Sent implements StoreCommand<unknown> {
  readonly operation: StoreCommand<unknown>["operation"]
  readonly keys: StoreCommand<unknown>["keys"]
  readonly args: StoreCommand<unknown>["args"]
  /** In whole milliseconds: V8 keeps other numbers as objects. */
  readonly at: number

  constructor({ args, keys, operation }: StoreCommand<unknown>, at: number) {
    this.operation = operation
    this.keys = keys
    this.args = args
    this.at = Math.ceil(at)
  }
}

export class RecentReleases {
  readonly #client: LockClient
  readonly #run: Store["run"]
  /** In the order in which they were sent: one that was tried again may be there several times. */
  #sent: Array<Sent> = []
  /** How many releases they count as. */
  #count = 0
  #tidiedAt = 0
  /** How often they have been sent again: a reconnect ends what an earlier one has begun. */
  #rounds = 0
  /**
   * What was given back when its release was sent again, or may have been, by {@link idOf}, for as long as its own next try may come, which
   * finds nothing.
   */
  readonly #givenBack = new ExpiringMap<true>()

  constructor(client: LockClient, run: Store["run"]) {
    this.#client = client
    this.#run = run
  }

  /** Remembers a release that is sent now. Nothing is looked up: thousands may be sent in a second. */
  add(command: StoreCommand<unknown>): void {
    const now = this.#client.now()
    if (this.#count >= most || now - this.#tidiedAt >= spanMillis) this.#tidy(now)
    this.#sent.push(new Sent(command, now))
    this.#count += weightOf(command)
  }

  /** Forgets a release that was refused, also if an earlier try of it is not known to have been. */
  withdraw(command: StoreCommand<unknown>): void {
    const id = idOf(command)
    // the id of a release that may be refused names the operation
    this.#sent = this.#sent.filter((sent) => sent.operation !== command.operation || idOf(sent) !== id)
  }

  /** Whether what a release gives back was given back when it was sent again, or may have been. */
  hasGivenBack(release: StoreCommand<unknown>): boolean {
    return this.#givenBack.get(idOf(release), this.#client.now()) !== undefined
  }

  /**
   * Sends them again, in the background; the latest first, of which that server has most likely not heard. Behind them, and as patiently,
   * what holders have published: of that it may not have heard either.
   */
  repeat(records: ReadonlyArray<StoreCommand<unknown>>): void {
    const { fork, now, options } = this.#client
    const since = now()
    this.#tidy(since)
    const all = [...this.#sent.toReversed(), ...records.map((record) => new Sent(record, since))]
    fork(this.#sendAgain(all, ++this.#rounds, since + options.releaseTimeoutMillis, firstPauseMillis))
  }

  /** Sends each once, and then those again that have failed, after pauses that grow to a second: none of these holds up the others. */
  #sendAgain(all: ReadonlyArray<Sent>, round: number, until: number, pauseMillis: number): Effect.Effect<void> {
    const { now, store } = this.#client
    const failed: Array<Sent> = []
    const send = (sent: Sent) =>
      Effect.suspend(() => {
        // what an earlier reconnect has begun to send is among those of the later one; of what is under way, the replies count
        if (round !== this.#rounds) return Effect.void
        return Effect.match(this.#run(repeated(sent, now(), store.publish)), {
          onSuccess: (reply) => this.#note(sent, (i) => Number(Array.isArray(reply) ? reply[i] : reply) >= 1),
          onFailure: (failure) => {
            this.#note(sent, () => mayHaveRun(Cause.fail(failure)))
            if (!isFinal(failure)) failed.push(sent)
          }
        })
      })
    return Effect.andThen(
      Effect.forEach(all, send, { concurrency: mostAtOnce, discard: true }),
      Effect.suspend(() =>
        failed.length === 0 || now() + pauseMillis >= until
          ? Effect.void
          : Effect.delay(
              this.#sendAgain(failed, round, until, Math.min(2 * pauseMillis, longestPauseMillis)),
              pauseMillis
            )
      )
    )
  }

  #note(sent: Sent, isGivenBack: (i: number) => boolean): void {
    const now = this.#client.now()
    const until = now + spanMillis + this.#client.options.releaseTimeoutMillis
    for (const [i, id] of idsOf(sent).entries()) if (isGivenBack(i)) this.#givenBack.set(id, true, until, now)
  }

  /** Forgets the old ones, and the oldest of too many. Those that were tried again count once: they push out no others. */
  #tidy(now: number): void {
    const kept: Array<Sent> = []
    let count = 0
    for (const sent of latestOfEach(this.#sent)) {
      if (count >= mostKept || now - sent.at >= spanMillis) break
      kept.push(sent)
      count += weightOf(sent)
    }
    this.#sent = kept.toReversed()
    this.#count = count
    this.#tidiedAt = now
  }
}

const weightOf = ({ args }: StoreCommand<unknown>): number => Math.max(1, args.length / argumentsPerRelease)

/** Of each release the last try, the latest first. */
const latestOfEach = (all: ReadonlyArray<Sent>): ReadonlyArray<Sent> => {
  const latest: Array<Sent> = []
  // nearly always an owner, of one release: only for another one under the same owner are ids composed
  const firstOf = new Map<unknown, Sent>()
  const others = new Set<string>()
  for (const sent of all.toReversed()) {
    const owner = sent.args[0]
    const first = firstOf.get(owner)
    if (first === undefined) {
      firstOf.set(owner, sent)
    } else {
      const id = idOf(sent)
      if (id === idOf(first) || others.has(id)) continue
      others.add(id)
    }
    latest.push(sent)
  }
  return latest
}

/**
 * What a release gives back. Locks are released by owners that are used once, and the other arguments may change from try to try; permits by ids,
 * of which the first is enough, or by the key of their grant.
 */
const idOf = ({ args, keys, operation }: StoreCommand<unknown>): string =>
  operation === lock.operations.keep || operation === fairLock.operations.release || releases.has(operation)
    ? `${keys[0]} ${args[0]}`
    : `${operation.name} ${keys[0]} ${keys[1]} ${args[0]} ${args[1]} ${args.length}`

/** The {@link idOf} of each lock that a release gives back. */
const idsOf = (sent: Sent): ReadonlyArray<string> => {
  const { args, keys, operation } = sent
  if (operation !== multiLock.operations.release) return [idOf(sent)]
  const locks = args.length - 3
  return Array.from({ length: locks }, (_, i) => `${keys[(i * keys.length) / locks]} ${args[0]}`)
}

const releases: ReadonlySet<unknown> = new Set([
  lock.operations.release,
  readWriteLock.operations.releaseRead,
  readWriteLock.operations.releaseWrite
])

/**
 * The release as it is sent to the server that has taken over. A lock that its `minHold` keeps stays taken until the time that was meant at first.
 * A release that left the lock to this client told no other, and may have kept a writer's place: on this server nobody else hands the lock
 * over, and it would be reserved for a waiter that has left.
 */
const repeated = (sent: Sent, now: number, publish: string): StoreCommand<unknown> => {
  const { args, at, keys, operation } = sent
  if (operation === lock.operations.keep) {
    const [owner, told, millis] = args as readonly [string, string, number]
    return new StoreCommand(operation, keys, [owner, told, Math.max(1, Math.ceil(millis - (now - at)))])
  }
  if (operation === multiLock.operations.release) {
    const [owner, leaseMillis, tokenLifeMillis, ...told] = args
    return new StoreCommand(operation, keys, [owner!, leaseMillis!, tokenLifeMillis!, ...told.map(() => publish)])
  }
  if (!releases.has(operation)) return sent
  const [owner, told, leaseMillis, tokenLifeMillis] = args
  if (leaseMillis === undefined || leaseMillis === "") return readWriteLock.keepingPlace(sent)
  if (told === publish) return sent
  const place = operation === readWriteLock.operations.releaseWrite ? [owner!] : []
  return new StoreCommand(operation, keys, [owner!, publish, leaseMillis, tokenLifeMillis!, ...place])
}
