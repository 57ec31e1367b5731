/**
 * The releases that this client has sent lately. When it is connected again, another server may answer: a replica that has taken over, and
 * has not heard of the last ones. For that server their owners still hold, so they are sent once more.
 */
import * as Effect from "effect/Effect"
import type { Fiber } from "effect/Fiber"
import type { Store } from "../store/Store.ts"
import * as lock from "../store/operations/lock.ts"
import * as readWriteLock from "../store/operations/readWriteLock.ts"
import { command, type StoreCommand } from "../store/operations/StoreOperation.ts"
import { retryRelease } from "../store/failures.ts"

/** Longer than it takes until another master has taken over: Sentinel waits for 30 seconds by default, while an isolated master still answers. */
const spanMillis = 60_000

/**
 * A limit to the memory that they take, and to what is sent at once to a server that has just taken over. One that gives back many permits
 * counts as one for each ten.
 */
const mostPerSpan = 5000
const argumentsPerRelease = 10

/** How many are under way at once: whatever else is sent meanwhile, and whoever waits for it, is behind these alone. */
const mostAtOnce = 100

interface ReleasingClient {
  readonly options: { readonly releaseTimeoutMillis: number }
  readonly store: Pick<Store, "publish">
  readonly now: () => number
  readonly fork: (effect: Effect.Effect<void>) => Fiber<void>
}

class Sent {
  readonly command: StoreCommand<unknown>
  readonly at: number

  constructor(command: StoreCommand<unknown>, at: number) {
    this.command = command
    this.at = at
  }
}

/** Those of the last span at least, and of the last two at most. */
export class RecentReleases {
  readonly #client: ReleasingClient
  readonly #run: Store["run"]
  #newer: Array<Sent> = []
  #older: Array<Sent> = []
  /** How many releases the newer ones count as. */
  #count = 0
  #since = 0
  #repeating: Fiber<void> | undefined = undefined
  /** How often they have been sent again: what is being released meanwhile may be found released. */
  repeats = 0

  constructor(client: ReleasingClient, run: Store["run"]) {
    this.#client = client
    this.#run = run
  }

  /** Remembers a release that is sent now. */
  add(command: StoreCommand<unknown>): void {
    const now = this.#client.now()
    if (this.#count >= mostPerSpan || now - this.#since >= spanMillis) this.#forget(now)
    this.#newer.push(new Sent(command, now))
    this.#count += Math.max(1, command.args.length / argumentsPerRelease)
  }

  /** Sends them again, in the background; the latest first, of which that server has most likely not heard. */
  repeat(): void {
    const { fork, now, options, store } = this.#client
    const since = now()
    this.repeats++
    if (since - this.#since >= spanMillis) this.#forget(since)
    const latestFirst = distinct([...this.#older, ...this.#newer].toReversed())
    // what an earlier reconnect has begun to send is among them
    this.#repeating?.interruptUnsafe()
    const until = since + options.releaseTimeoutMillis
    this.#repeating = fork(
      Effect.forEach(
        latestFirst,
        (sent) =>
          Effect.suspend(() => {
            const command = repeated(sent, now(), store.publish)
            return Effect.ignore(retryRelease(this.#run(command), (pause) => now() + pause < until))
          }),
        { concurrency: mostAtOnce, discard: true }
      )
    )
  }

  #forget(now: number): void {
    this.#older = now - this.#since < 2 * spanMillis ? this.#newer : []
    this.#newer = []
    this.#count = 0
    this.#since = now
  }
}

/** Each command once: a release that fails is sent, and remembered, at every try. */
const distinct = (all: ReadonlyArray<Sent>): ReadonlyArray<Sent> => {
  const seen = new Set<string>()
  return all.filter(({ command: { args, keys, operation } }) => {
    const text = JSON.stringify([operation.name, keys, args])
    return !seen.has(text) && seen.add(text)
  })
}

const releases: ReadonlySet<unknown> = new Set([
  lock.operations.release,
  readWriteLock.operations.releaseRead,
  readWriteLock.operations.releaseWrite
])

/**
 * The release as it is sent to the server that has taken over. A lock that its `minHold` keeps stays taken until the time that was meant at first.
 * A release that left the lock to this client told no other, and kept a writer's place: on this server nobody else hands the lock over, and the
 * place would reserve it for a writer that has left.
 */
const repeated = ({ at, command: sent }: Sent, now: number, publish: string): StoreCommand<unknown> => {
  const { args, keys, operation } = sent
  if (operation === lock.operations.keep) {
    const [owner, millis] = args as readonly [string, number]
    return lock.keep({ lock: keys[0]! }, owner, Math.max(1, Math.ceil(millis - (now - at))))
  }
  const [owner, told, leaseMillis] = args
  const isHandedOver = leaseMillis !== undefined && leaseMillis !== ""
  if (told !== "" || !isHandedOver || !releases.has(operation)) return sent
  const place = operation === readWriteLock.operations.releaseWrite ? [owner!] : []
  return command(operation, keys, [owner!, publish, leaseMillis, ...place])
}
