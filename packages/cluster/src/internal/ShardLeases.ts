/**
 * The leases on shards that Redis has granted to this process, as far as it knows: asks for them, extends them and gives them back.
 */
import type * as Clock from "effect/Clock"
import * as ShardId from "effect/cluster/ShardId"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import type { LockStoreError, RedisDriver, ScriptDeadlines } from "effect-redis-lock"
import { scripts } from "./scripts.generated.ts"

/** Shards that Redis has granted together, until one end. */
interface Lease {
  /** Of the request that it was granted to; of a later one it is higher. */
  readonly request: number
  /** Names it in Redis, beside address and process. */
  readonly epoch: string
  readonly shards: ReadonlySet<ShardId.ShardId>
  /** The earliest end on the monotonic clock, counted from before the request. */
  deadline: number
}

/** What this process knows to hold at one address. */
interface Holdings {
  /** By shard. */
  readonly leases: Map<string, Lease>
  /** Of the last refresh that listed its shards. */
  refreshed: Lease | undefined
}

/** Whose leases they are, and for how long. Times are milliseconds. */
export interface ShardLeasesOptions {
  /** Runners and shards. */
  readonly keys: readonly [runners: string, shards: string]
  readonly process: string
  readonly lease: number
  /** How long the machine id of a runner that has vanished is kept. */
  readonly retention: number
  /** How long Sharding waits for a refresh before it gives up all its shards. */
  readonly refreshTimeout: number
  readonly run: ScriptDeadlines.EvalWithDeadline
  readonly clock: Clock.Clock
  /** For commands that nobody waits for. */
  readonly scope: Scope.Scope
}

export class ShardLeases {
  readonly #options: ShardLeasesOptions
  readonly #holdings = new Map<string, Holdings>()
  #requests = 0

  constructor(options: ShardLeasesOptions) {
    this.#options = options
  }

  /** Acquires as many of these shards as are free; returns those. */
  acquire(address: string, asked: ReadonlyArray<string>): Effect.Effect<Array<string>, LockStoreError> {
    const send = this.#askFor(scripts["runner_storage/acquire"], address, [], asked)
    return Effect.map(this.#whileRedisIsAway(send, Number.POSITIVE_INFINITY), (given) =>
      given === undefined ? [] : Array.from(given.shards, String)
    )
  }

  /** Refreshes these shards; returns those that it still holds. */
  refresh(address: string, asked: ReadonlyArray<string>): Effect.Effect<Array<string>, LockStoreError> {
    return Effect.suspend(() => {
      const { retention, scope } = this.#options
      const held = this.#heldAt(address)
      const deadlineOf = (shard: string) =>
        this.#heldAt(address).leases.get(shard)?.deadline ?? Number.NEGATIVE_INFINITY
      const isLasting = (shard: string) => deadlineOf(shard) > this.#now()
      const lasting = asked.filter(isLasting)
      // one that is released before an attempt must not be extended by it
      const send = Effect.suspend(() =>
        this.#askFor(scripts["runner_storage/refresh"], address, [retention], lasting.filter(isLasting))
      )
      // That leases have ended is known without Redis, and must be reported at once. The command that keeps this runner
      // alive is sent in the background.
      if (lasting.length === 0 && asked.length > 0) return Effect.as(Effect.forkIn(Effect.ignore(send), scope), [])
      const firstEnd = lasting.reduce((least, shard) => Math.min(least, deadlineOf(shard)), Number.POSITIVE_INFINITY)
      return Effect.map(this.#whileRedisIsAway(send, firstEnd), (given) => {
        if (given === undefined) return []
        if (given.shards.size > 0 && given.request > (held.refreshed?.request ?? 0)) held.refreshed = given
        return Array.from(given.shards, String)
      })
    })
  }

  /**
   * Refreshes shards that were refreshed together, all or some of them, without listing them. Returns false if one lease does not cover all
   * of them, or no longer does: then each must be asked for.
   */
  extend(address: string, asked: ReadonlyArray<ShardId.ShardId>): Effect.Effect<boolean, LockStoreError> {
    return Effect.suspend(() => {
      const held = this.#heldAt(address)
      const { refreshed } = held
      return refreshed === undefined ||
        this.#now() >= refreshed.deadline ||
        asked.length === 0 ||
        !asked.every((shard) => refreshed.shards.has(shard))
        ? Effect.succeed(false)
        : this.#whileRedisIsAway(this.#extend(address, held, refreshed), refreshed.deadline)
    })
  }

  release(address: string, shard: string): Effect.Effect<void, LockStoreError> {
    return Effect.suspend(() => {
      const held = this.#heldAt(address)
      held.leases.delete(shard)
      held.refreshed = undefined
      return this.#giveBack(scripts["runner_storage/release"], address, shard)
    })
  }

  releaseAll(address: string): Effect.Effect<void, LockStoreError> {
    return Effect.suspend(() => {
      this.#holdings.delete(address)
      return this.#giveBack(scripts["runner_storage/release_all"], address)
    })
  }

  #now(): number {
    return Number(this.#options.clock.monotonicTimeNanosUnsafe()) / 1e6
  }

  /** When a lease ends that is asked for now: clocks may differ in rate by one per cent, as for locks. */
  get #deadline(): number {
    return this.#now() + this.#options.lease * 0.99 - 2
  }

  #heldAt(address: string): Holdings {
    let held = this.#holdings.get(address)
    if (held === undefined) this.#holdings.set(address, (held = { leases: new Map(), refreshed: undefined }))
    return held
  }

  /**
   * Requests a lease of these shards, and notes which it covers. A reply that arrives after the lease has ended grants
   * nothing: this process was stopped.
   */
  #askFor(
    script: RedisDriver.RedisScript,
    address: string,
    args: ReadonlyArray<string | number>,
    asked: ReadonlyArray<string>
  ): Effect.Effect<Lease | undefined, LockStoreError> {
    return Effect.suspend(() => {
      const { keys, lease, process, run } = this.#options
      const request = ++this.#requests
      const deadline = this.#deadline
      return Effect.map(run(script, keys, [address, process, lease, ...args, request, ...asked]), (reply) => {
        const { leases } = this.#heldAt(address)
        for (const shard of asked) leases.delete(shard)
        if (!Array.isArray(reply) || this.#now() >= deadline) return undefined
        const [epoch, ...refused] = reply as [epoch: string, ...refused: ReadonlyArray<number>]
        const missing = new Set(refused)
        const granted = asked.filter((_, index) => !missing.has(index + 1))
        const given: Lease = { request, epoch, shards: new Set(granted.map(ShardId.fromString)), deadline }
        for (const shard of granted) leases.set(shard, given)
        return given
      })
    })
  }

  /** Only what was requested before: a command that arrives late must not free what has been acquired again. */
  #giveBack(script: RedisDriver.RedisScript, address: string, ...shard: ReadonlyArray<string>) {
    const { keys, process, run } = this.#options
    return Effect.asVoid(run(script, [keys[1]], [address, process, this.#requests, ...shard]))
  }

  #extend(address: string, held: Holdings, refreshed: Lease): Effect.Effect<boolean, LockStoreError> {
    return Effect.suspend(() => {
      const { keys, lease, process, retention, run } = this.#options
      const deadline = this.#deadline
      const args = [address, process, lease, retention, refreshed.epoch, refreshed.shards.size]
      return Effect.map(run(scripts["runner_storage/extend"], keys, args), (reply) => {
        const isExtended = reply === 1 && this.#now() < deadline
        if (isExtended) refreshed.deadline = deadline
        else if (held.refreshed === refreshed) held.refreshed = undefined
        return isExtended
      })
    })
  }

  /** A restart or a failover of Redis must cost time, not shards, until the first lease ends. */
  #whileRedisIsAway<A>(self: Effect.Effect<A, LockStoreError>, until: number): Effect.Effect<A, LockStoreError> {
    return Effect.suspend(() => {
      const { refreshTimeout } = this.#options
      const giveUpAt = Math.min(until, this.#now() + refreshTimeout)
      return Effect.retry(self, {
        while: (error) => error.isTransient && this.#now() < giveUpAt,
        schedule: Schedule.spaced(Math.min(100, refreshTimeout / 10))
      })
    })
  }
}
